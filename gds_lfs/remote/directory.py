"""A remote that is a folder: a disk, a network mount, a synchronised directory.

Every object is written to `tmp/` inside the folder, flushed to the disk and renamed to its name, so nobody
ever sees part of one. The folder itself is made by the first push; its parent must exist, because a missing
parent usually means a drive that is not mounted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from types import MappingProxyType
from typing import TYPE_CHECKING

from gds_lfs.errors import RemoteError
from gds_lfs.files import make_below, sync_folder, write_all
from gds_lfs.remote.base import AbsentRemoteError, Entry, NoSuchKeyError, ShortBodyError
from gds_lfs.remote.draft import Spooled
from gds_lfs.remote.nameless import Nameless

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gds_lfs.remote.base import Source
    from gds_lfs.remote.draft import Draft

__all__ = ["DirectoryRemote"]

#: What a killed push left in `tmp/` is removed when it is this old (seconds); no pack takes as long.
LEFTOVER_AGE = 2 * 24 * 3600

_COPY_SIZE = 1 << 20
_TEMPORARY = "tmp/"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM}


class DirectoryRemote:
    """Objects as files below a folder."""

    parallel = 4
    traffic: Mapping[str, int] = MappingProxyType({})

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = str(root)
        self._swept = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def prepare(self) -> None:
        """A folder needs none."""

    def create(self) -> None:
        """Make the folder, but not its parents."""
        try:
            self.root.mkdir(exist_ok=True)
        except FileNotFoundError as error:
            raise RemoteError(
                f"{self.url}: {self.root.parent} does not exist; is the drive mounted? "
                "If the place is right, create that folder."
            ) from error
        except FileExistsError as error:
            raise RemoteError(f"{self.url} is a file; a dataset remote must be a folder.") from error
        except OSError as error:
            raise self._failure(error, "create the folder") from error

    def put(self, key: str, source: Source) -> None:
        """Copy, flush, rename."""
        target, size = self._path(key), _source_size(source)
        try:
            if _size(target) == size:
                return
            self._sweep()
            temporary = self._path(_TEMPORARY + os.urandom(16).hex())
            with contextlib.ExitStack() as on_error:
                on_error.callback(_remove, temporary)
                self._write(temporary, source)
                self._rename(temporary, target, size)
                on_error.pop_all()
        except OSError as error:
            raise self._failure(error, f"write {key}") from error

    def draft(self, scratch: Path) -> Draft:
        """In the folder itself where that leaves nothing of a process that is killed."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                return Nameless(self, self.root, lambda error: self._failure(error, "write a pack"))
        return Spooled(self, scratch)

    def get(self, key: str) -> bytes:
        """The file's bytes."""
        try:
            with open(self._path(key), "rb") as file:
                return file.read()
        except FileNotFoundError as error:
            raise self._absent(key) from error
        except OSError as error:
            raise self._failure(error, f"read {key}") from error

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of the file's bytes."""
        try:
            with open(self._path(key), "rb") as file:
                file.seek(offset)
                data = file.read(length)
        except FileNotFoundError as error:
            raise self._absent(key) from error
        except OSError as error:
            raise self._failure(error, f"read {key}") from error
        if len(data) < length:
            raise ShortBodyError(
                f"{self.url}: {key} is cut short: it ends at {offset + len(data)}, not at {offset + length}."
            )
        return data

    def list(self, prefix: str) -> Iterator[Entry]:
        """Walk the part of the folder that can hold such keys."""
        folder = prefix.rpartition("/")[0]
        try:
            if not self.root.is_dir():
                raise self._not_there()
            for entry in _walk(self.root / folder, folder + "/" if folder else ""):
                if entry.key.startswith(prefix) and not entry.key.startswith(_TEMPORARY):
                    yield entry
        except OSError as error:
            raise self._failure(error, f"list {prefix}") from error

    def size(self, key: str) -> int | None:
        """The file's size."""
        try:
            return _size(self._path(key))
        except OSError as error:
            raise self._failure(error, f"look at {key}") from error

    def delete(self, key: str) -> None:
        """Remove the file."""
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(key))
        except OSError as error:
            raise self._failure(error, f"delete {key}") from error

    def _path(self, key: str) -> str:
        return os.path.join(self.root, *key.split("/"))

    def _write(self, path: str, source: Source) -> None:
        # Not mkstemp: its mode 0600 would shut the colleagues out of a shared folder, whatever the umask.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = make_below(self.root, path, lambda path: os.open(path, flags, 0o666))
        with open(descriptor, "wb", buffering=0):
            if isinstance(source, bytes):
                write_all(descriptor, source)
            else:
                source.seek(0)
                while piece := source.read(_COPY_SIZE):
                    write_all(descriptor, piece)
            os.fsync(descriptor)

    def _rename(self, temporary: str, target: str, size: int) -> None:
        try:
            make_below(self.root, target, lambda target: os.replace(temporary, target))
        except PermissionError:
            # Windows refuses to replace a file that someone reads; it is the same object if it is as long.
            if _size(target) != size:
                raise
            os.unlink(temporary)
        with contextlib.suppress(OSError):  # not every system can open a folder; the rename is atomic without it
            sync_folder(os.path.dirname(target))

    def _sweep(self) -> None:
        if self._swept:
            return
        self._swept = True
        folder, oldest = self._path(_TEMPORARY), time.time() - LEFTOVER_AGE
        if os.path.islink(folder.rstrip("/")):
            return
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.path)

    def _absent(self, key: str) -> RemoteError:
        there = os.path.isdir(self.root)  # unlike Path.is_dir, it never raises
        return NoSuchKeyError(f"{self.url} has no {key}.") if there else self._not_there()

    def _not_there(self) -> RemoteError:
        if os.path.isfile(self.root):
            return RemoteError(f"{self.url} is a file; a dataset remote must be a folder.")
        return AbsentRemoteError(f"{self.url} is not there: is the drive mounted, was anything pushed to it?")

    def _failure(self, error: OSError, doing: str) -> RemoteError:
        if error.errno in _FULL:
            return RemoteError(f"{self.url}: cannot {doing}: the disk or quota there is full.")
        if error.errno in _DENIED:
            return RemoteError(f"{self.url}: no permission to {doing}.")
        if error.errno == errno.EROFS:
            return RemoteError(f"{self.url}: cannot {doing}: it is mounted read-only.")
        if isinstance(error, FileNotFoundError) and not os.path.isdir(self.root):
            return self._not_there()
        return RemoteError(f"{self.url}: cannot {doing}: {error.strerror or error}.")


def _walk(folder: Path, prefix: str) -> Iterator[Entry]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder / entry.name, f"{prefix}{entry.name}/")
                continue
            # A file that somebody deletes while we walk is simply not listed.
            with contextlib.suppress(FileNotFoundError):
                yield Entry(prefix + entry.name, entry.stat().st_size)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _source_size(source: Source) -> int:
    if isinstance(source, bytes):
        return len(source)
    return source.seek(0, os.SEEK_END)
