"""Pointers in the work tree replaced by their content: in parallel, with the index told of each file's new stat data.

git's own checkout buffers a whole file for its filter and asks for one after another; here files are written straight
from the store, beside their final name, and renamed into place. Only files that hold exactly the pointer the index
has for them are touched: what a user changed, deleted or kept out of a sparse checkout stays as it is.
"""

from __future__ import annotations

import errno
import os
import re
import stat as statmodule
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gds_lfs.content.pointer import held_by
from gds_lfs.errors import CorruptObjectError, GitDatasetsError, MissingObjectError
from gds_lfs.files import give_name, write_all
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import sidecars
from gds_lfs.porcelain.messages import count
from gds_lfs.porcelain.pointers import PointerFile, in_entries
from gds_lfs.porcelain.staging import restage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.pointers import Selection
    from gds_lfs.porcelain.workspace import Workspace

WORKERS = min(8, (os.cpu_count() or 1) * 2)

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_NAMELESS: int | None = getattr(os, "O_TMPFILE", None)
_DESCRIPTORS = "/proc/self/fd"
_TEMPORARY = re.compile(rb"\.gds-[0-9a-f]{16}")
_OLD = 3600
"""Seconds; nobody writes a file for so long."""


@dataclass
class Filled:
    """What became of the files: how many were written, those that could not be, with the reason, and those whose data
    in the store turned out to be damaged.
    """

    files: int = 0
    failed: dict[bytes, str] = field(default_factory=dict)
    damaged: list[PointerFile] = field(default_factory=list)


def unfilled(workspace: Workspace, selection: Selection) -> list[PointerFile]:
    """The selected files of the work tree that hold the very pointer the index has for them."""
    repo = workspace.repo
    files = in_entries(repo, (entry for entry in repo.staged() if entry.path in selection))
    return [file for file in files if holds_pointer(repo.absolute(file.path), file)]


def holds_pointer(path: bytes, file: PointerFile) -> bool:
    """Whether the file on disk is the pointer itself."""
    text = file.pointer.encode()
    try:
        stat = os.lstat(path)
        # No other file is opened. Line ends may have become CRLF.
        if stat.st_size not in (len(text), len(text) + text.count(b"\n")) or not statmodule.S_ISREG(stat.st_mode):
            return False
        return held_by(path) == file.pointer
    except OSError:
        return False


def fill(workspace: Workspace, files: Iterable[PointerFile]) -> Filled:
    """Write the content of each file that is in the store, and refresh its index entry."""
    result = Filled()
    written: list[tuple[Entry, os.stat_result | None]] = []
    progress = workspace.messages.progress
    wanted = list(files)
    # An entry with the pointer's size makes git call the filled-in file modified, unseen. Whatever ends this early,
    # git must look at the content.
    restage(workspace.repo, [(file.entry, None) for file in wanted])
    scratch = workspace.scratch
    folders = {os.path.dirname(workspace.repo.absolute(file.path)) for file in wanted}
    for folder in {*folders, os.fsencode(scratch)}:
        _sweep(folder)
    began = time.time()
    progress.start("Checking out", sum(file.pointer.size for file in wanted), len(wanted))
    with ThreadPoolExecutor(WORKERS) as pool:
        for file, outcome in zip(wanted, pool.map(lambda f: _write(workspace, f, scratch), wanted), strict=True):
            if isinstance(outcome, os.stat_result):
                result.files += 1
                written.append((file.entry, outcome))
                progress.advance(file.pointer.size, 1)
            elif isinstance(outcome, OSError):
                result.failed[file.path] = outcome.strerror or str(outcome)
            else:
                result.damaged.append(file)
    progress.done()
    restage(workspace.repo, written, since=began)
    return result


def _write(workspace: Workspace, file: PointerFile, scratch: Path) -> os.stat_result | OSError | GitDatasetsError:
    """Write one file; its stat, or why it could not be written."""
    try:
        target = workspace.repo.absolute(file.path)
        pieces = workspace.store.pieces(file.pointer.oid)
        executable = file.entry.mode == 0o100755
        stat = replace(target, pieces, executable=executable, scratch=scratch)
    except (MissingObjectError, CorruptObjectError, OSError) as error:
        return error
    sidecars.move_aside(workspace, file.path)
    return stat


def replace(
    target: bytes, pieces: Iterator[bytes], *, executable: bool = False, scratch: Path | None = None
) -> os.stat_result:
    """Write `target` through a temporary file; nothing is left of it on an error. Gives its stat.

    The file has no name, or one in `scratch`, before it has its own, where the system and its disks can do that, so
    that nothing is left in the work tree by a process that is killed either; else it is in the target's folder.
    """
    folder = os.path.dirname(target) or b"."
    mode = (0o777 if executable else 0o666) & ~_umask()
    # The name does not grow from the file's: that one may be as long as the file system allows.
    name = os.path.join(folder, b".gds-" + os.urandom(8).hex().encode())
    handle = _open_nameless(folder)
    try:
        with open(os.open(name, _NEW_FILE, mode) if handle is None else handle, "wb", buffering=0) as stream:
            for piece in pieces:  # a stream without a buffer may take a part of one, and say nothing
                write_all(stream.fileno(), piece)
            if handle is not None:
                os.fchmod(handle, mode)
                name = _name(handle, name, scratch)
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    return os.lstat(target)


def _sweep(folder: bytes) -> None:
    """Remove what a process left that was killed in the instant between naming a file and renaming it."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < time.time() - _OLD:
                os.unlink(entry.path)


def _open_nameless(folder: bytes) -> int | None:
    """A file that has no name until it is whole, so that a kill leaves none; None where there is no such thing."""
    if _NAMELESS is None or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, _NAMELESS | os.O_WRONLY, 0o600)
    except OSError:  # a file system that cannot: the file with a name works, or tells what is wrong
        return None


def _name(handle: int, name: bytes, scratch: Path | None) -> bytes:
    """Name the file in `scratch`, or as `name` says where that is another file system; what it is called now."""
    if scratch is not None:
        place = os.path.join(os.fsencode(scratch), os.path.basename(name))
        with suppress(OSError):
            give_name(handle, place)
            return place
    give_name(handle, name)
    return name


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
    """Name the files that could not be filled in, if there are any. Raises GitDatasetsError or CorruptObjectError."""
    damaged = {file.path: "its data here is damaged" for file in filled.damaged}
    left = filled.failed | damaged
    if not left:
        return
    names = (f"{quote(path)}: {why}" for path, why in left.items())
    workspace.messages.warn_paths("these files could not be filled in:", names, "Then run `git datasets pull` again.")
    told = f"{count(len(left), 'file')} could not be filled in"
    raise GitDatasetsError(told) if filled.failed else CorruptObjectError(told)
