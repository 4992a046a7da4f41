"""What the child process that runs `index.py` is given: an interpreter, and the staged Python files.

It never sees what merely lies in the work tree under another name: a commit is made of what is staged, so that is
what runs. Nothing here is called by a clone, a fetch or a checkout.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError
from gds_lfs.git.paths import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gds_lfs.dataset.declaration import Declaration
    from gds_lfs.dataset.sandbox import Sandbox
    from gds_lfs.porcelain.workspace import Workspace


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
    """The staged Python files, by their path from the top. One that is no UTF-8 text cannot be imported."""
    repo = workspace.repo
    entries = [e for e in repo.staged(index=index) if e.path.endswith(b".py") and e.stage == 0]
    texts = dict(repo.blobs({entry.sha for entry in entries}))
    sources = {}
    for entry in entries:
        try:
            sources[os.fsdecode(entry.path)] = texts[entry.sha].decode("utf-8-sig")
        except (UnicodeDecodeError, KeyError):
            continue
    return sources


def require_source(sources: dict[str, str], index: bytes) -> str:
    """The name of the dataset's file among the sources. Raises ConfigError when it cannot be read as text."""
    name = os.fsdecode(index)
    if name not in sources:
        raise ConfigError(f"{quote(index)} is not a staged UTF-8 text file: git add {quote(index)}")
    return name


@contextmanager
def sandbox(workspace: Workspace, sources: dict[str, str], entry: str, scratch: Path) -> Iterator[Sandbox]:
    """The child for one dataset, its spool below `scratch`; what the user's code prints goes to stderr."""
    from gds_lfs.dataset.sandbox import Sandbox

    spool = scratch / "spool"
    spool.mkdir()

    def show(data: bytes) -> None:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()

    with Sandbox(interpreter(workspace), workspace.repo.work_tree, entry, sources, spool, output=show) as child:
        yield child


@contextmanager
def scratch_folder(workspace: Workspace) -> Iterator[Path]:
    """A folder of ours that is gone afterwards, on the file system of the store."""
    folder = Path(tempfile.mkdtemp(prefix="reconcile-", dir=workspace.scratch))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def declare_on_disk(workspace: Workspace, index: bytes) -> Declaration:
    """What the work tree's `index.py` declares, its neighbours as staged: for `track`, which stages it next."""
    sources = staged_sources(workspace)
    name = os.fsdecode(index)
    try:
        sources[name] = Path(os.fsdecode(workspace.repo.absolute(index))).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{quote(index)} is not UTF-8 text") from error
    with scratch_folder(workspace) as scratch, sandbox(workspace, sources, name, scratch) as child:
        return child.declare()
