"""Pointers in the work tree replaced by their content: in parallel, with the index told of each file's new stat data.

git's own checkout buffers a whole file for its filter and asks for one after another; here files are written straight
from the store, beside their final name, and renamed into place. Only files that hold exactly the pointer the index
has for them are touched: what a user changed, deleted or kept out of a sparse checkout stays as it is.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gds_lfs.content.pointer import MAX_SIZE, recognise
from gds_lfs.errors import CorruptObjectError, MissingObjectError
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import sidecars
from gds_lfs.porcelain.pointers import PointerFile, in_entries
from gds_lfs.porcelain.staging import Blob, stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gds_lfs.porcelain.pointers import Selection
    from gds_lfs.porcelain.workspace import Workspace

WORKERS = min(8, (os.cpu_count() or 1) * 2)


@dataclass
class Filled:
    """What became of the files: how many were written, and those that could not be, with the reason."""

    files: int = 0
    failed: dict[bytes, str] = field(default_factory=dict)


def unfilled(workspace: Workspace, selection: Selection) -> list[PointerFile]:
    """The selected files of the work tree that hold the very pointer the index has for them."""
    repo = workspace.repo
    files = in_entries(repo, (entry for entry in repo.staged() if entry.path in selection))
    return [file for file in files if holds_pointer(repo.absolute(file.path), file)]


def holds_pointer(path: bytes, file: PointerFile) -> bool:
    """Whether the file on disk is the pointer itself."""
    try:
        stat = os.lstat(path)
        if not 0 < stat.st_size <= MAX_SIZE or os.path.islink(path):
            return False
        with open(path, "rb") as stream:
            return recognise(stream.read(MAX_SIZE + 1)) == file.pointer
    except OSError:
        return False


def fill(workspace: Workspace, files: Iterable[PointerFile]) -> Filled:
    """Write the content of each file that is in the store, and refresh its index entry."""
    result = Filled()
    written: list[Blob] = []
    progress = workspace.messages.progress
    began = time.time()
    wanted = list(files)
    progress.start("checking out", sum(file.pointer.size for file in wanted), len(wanted))
    with ThreadPoolExecutor(WORKERS) as pool:
        for file, outcome in zip(wanted, pool.map(lambda f: _write(workspace, f), wanted), strict=True):
            if isinstance(outcome, str):
                result.failed[file.path] = outcome
                continue
            result.files += 1
            written.append(Blob(file.path, file.pointer.encode(), outcome, file.entry.mode))
            progress.advance(file.pointer.size, 1)
    progress.done()
    stage(workspace.repo, written, since=began)
    return result


def _write(workspace: Workspace, file: PointerFile) -> os.stat_result | str:
    """Write one file; its stat, or why it could not be written."""
    try:
        target = workspace.repo.absolute(file.path)
        stat = replace(target, workspace.store.pieces(file.pointer.oid), executable=file.entry.mode == 0o100755)
    except (MissingObjectError, CorruptObjectError) as error:
        return str(error)
    except OSError as error:
        return f"{quote(file.path)}: {error.strerror}"
    sidecars.move_aside(workspace, file.path)
    return stat


def replace(target: bytes, pieces: Iterator[bytes], *, executable: bool = False) -> os.stat_result:
    """Write `target` through a temporary file in its folder; nothing is left of it on an error. Gives its stat."""
    folder = os.path.dirname(target) or b"."
    # The name does not grow from the file's: that one may be as long as the file system allows.
    handle, name = tempfile.mkstemp(prefix=b".gds-", dir=folder)
    try:
        with open(handle, "wb", buffering=0) as stream:
            stream.writelines(pieces)
        os.chmod(name, (0o777 if executable else 0o666) & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return os.lstat(target)


def move(source: Path, target: bytes) -> None:
    """Move a file of ours to its place in the work tree, with the permissions a new file has."""
    os.chmod(source, 0o666 & ~_umask())
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with open(source, "rb") as file:
            replace(target, iter(lambda: file.read(1024 * 1024), b""))


_mask: list[int] = []


def _umask() -> int:
    # The mask can only be read by setting it, for all threads at once: so once, before they write.
    if not _mask:
        _mask.append(os.umask(0o022))
        os.umask(_mask[0])
    return _mask[0]


def raise_failed(workspace: Workspace, filled: Filled) -> None:
    """Name the files that could not be filled in and raise MissingObjectError, if there are any."""
    if not filled.failed:
        return
    names = (f"{quote(path)}: {why}" for path, why in filled.failed.items())
    workspace.messages.warn_paths("these files could not be filled in:", names, "Then run `git datasets pull` again.")
    raise MissingObjectError(f"{len(filled.failed):,} files could not be filled in")
