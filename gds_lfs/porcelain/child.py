"""What the child process that runs `index.py` is given: an interpreter, and the staged Python files.

It never sees what merely lies in the work tree under another name: a commit is made of what is staged, so that is
what runs. Nothing here is called by a clone, a fetch or a checkout.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import tokenize
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError
from gds_lfs.git.paths import quote
from gds_lfs.lock import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gds_lfs.dataset.declaration import Declaration
    from gds_lfs.dataset.sandbox import Confines, Sandbox
    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.workspace import Workspace

DYNAMIC = "datasets.dynamicDependencies"
"""The setting that has a dataset's requirements.txt made into the environment that its code runs in."""

_SCRATCH = "reconcile-"
_LOCK = "lock"


def interpreter(workspace: Workspace) -> str:
    """`datasets.python` of the user's git config, else the active virtual environment's, else our own."""
    chosen = workspace.settings.get("datasets.python")
    if chosen:
        found = shutil.which(os.path.expanduser(chosen))
        if found is None:
            raise ConfigError(f"datasets.python is {chosen}, which is not a program: git config datasets.python PATH")
        return found
    environment = workspace.settings.virtual_env
    if environment is not None:
        for name in ("bin/python", "Scripts/python.exe"):
            if (environment / name).is_file():
                return str(environment / name)
    return sys.executable


def staged_sources(workspace: Workspace, index: Path | None = None) -> dict[str, str]:
    """The staged Python files, by their path from the top, decoded as Python does. Others cannot be imported."""
    return sources_of(workspace, workspace.repo.staged(index=index))


def sources_of(workspace: Workspace, entries: Iterable[Entry]) -> dict[str, str]:
    """The Python files among the entries of an index or of a tree."""
    python = [entry for entry in entries if entry.path.endswith(b".py") and entry.stage == 0]
    texts = dict(workspace.repo.blobs({entry.sha for entry in python}))
    sources = {}
    for entry in python:
        try:
            sources[os.fsdecode(entry.path)] = _decoded(texts[entry.sha])
        except (UnicodeDecodeError, SyntaxError, KeyError):
            continue
    return sources


def require_source(sources: dict[str, str], index: bytes) -> str:
    """The name of the dataset's file among the sources. Raises ConfigError when it cannot be read as text."""
    name = os.fsdecode(index)
    if name not in sources:
        raise ConfigError(f"{quote(index)} is not staged as UTF-8 text: save it so, then git add {quote(index)}")
    return name


def _decoded(text: bytes) -> str:
    """Raises UnicodeDecodeError, or SyntaxError for an encoding that Python does not know."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
    return text.decode(encoding)


@contextmanager
def sandbox(
    workspace: Workspace,
    sources: dict[str, str],
    entry: str,
    scratch: Path,
    *,
    python: str | None = None,
    confines: Confines | None = None,
    output: Callable[[bytes], None] | None = None,
) -> Iterator[Sandbox]:
    """The child for one dataset, its spool below `scratch`; what the user's code prints goes to stderr, or to `output`.

    It runs in our choice of interpreter, or in `python`; `datasets.memoryLimit` holds either way.
    """
    from gds_lfs.dataset.sandbox import Confines, Sandbox

    spool = scratch / "spool"
    spool.mkdir()
    confines = confines or Confines(memory=workspace.settings.get_number("datasets.memoryLimit"))
    python = python or interpreter(workspace)
    root = workspace.repo.work_tree
    with Sandbox(
        python, root, entry, sources, spool, output=output or partial(show, workspace), confines=confines
    ) as child:
        yield child


def show(workspace: Workspace, data: bytes) -> None:
    """Print what user code prints."""
    workspace.messages.progress.done()  # the code has a voice, and perhaps a bar, of its own
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()


@contextmanager
def scratch_folder(workspace: Workspace) -> Iterator[Path]:
    """A folder of ours that is gone afterwards, on the file system of the store. Those of killed commands go too."""
    for left in workspace.scratch.glob(f"{_SCRATCH}*"):
        if FileLock(left / _LOCK).take():
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=workspace.scratch))
    lock = FileLock(folder / _LOCK)
    lock.create()
    try:
        yield folder
    finally:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)


def declare_on_disk(workspace: Workspace, index: bytes) -> Declaration:
    """What the work tree's `index.py` declares, its neighbours as staged: for `track`, which stages it next."""
    sources = staged_sources(workspace)
    name = os.fsdecode(index)
    try:
        sources[name] = _decoded(Path(os.fsdecode(workspace.repo.absolute(index))).read_bytes())
    except (UnicodeDecodeError, SyntaxError) as error:
        raise ConfigError(f"{quote(index)} is not UTF-8 text") from error
    python = None
    if workspace.settings.get_bool(DYNAMIC):
        from gds_lfs.porcelain.venvs import environments

        requirements = workspace.repo.work_tree / Path(name).with_name("requirements.txt")
        python = environments().prepare(requirements, interpreter(workspace), partial(show, workspace))
    with scratch_folder(workspace) as scratch, sandbox(workspace, sources, name, scratch, python=python) as child:
        return child.declare()
