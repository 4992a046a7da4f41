"""A remote that is a folder: a disk, a network mount, a synchronised directory.

Every object is written to `tmp/` inside the folder, flushed to the disk and renamed to its name, so nobody
ever sees part of one. The folder itself is made by the first push; its parent must exist, because a missing
parent usually means a drive that is not mounted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from types import MappingProxyType
from typing import TYPE_CHECKING

from gds_lfs.errors import RemoteError
from gds_lfs.remote.base import AbsentRemoteError, Entry, NoSuchKeyError, ShortBodyError
from gds_lfs.remote.directory_draft import TEMPORARY, FileDraft

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gds_lfs.remote.base import Source

__all__ = ["DirectoryRemote"]

#: What a killed push left in `tmp/` is removed when it is this old (seconds); no pack takes as long.
LEFTOVER_AGE = 2 * 24 * 3600

_COPY_SIZE = 1 << 20
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
        if self.size(key) == _source_size(source):
            return
        with contextlib.closing(self._draft(f"write {key}")) as draft:
            if isinstance(source, bytes):
                draft.write(source)
            else:
                source.seek(0)
                while piece := source.read(_COPY_SIZE):
                    draft.write(piece)
            draft.put(key)

    def draft(self, scratch: Path) -> FileDraft:  # noqa: ARG002  # what is written here need not be copied here
        """A file in the folder, from its first byte."""
        return self._draft("write a pack")

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
                if entry.key.startswith(prefix) and not entry.key.startswith(TEMPORARY):
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

    def _draft(self, doing: str) -> FileDraft:
        self._sweep()
        return FileDraft(self.root, lambda error: self._failure(error, doing))

    def _sweep(self) -> None:
        if self._swept:
            return
        self._swept = True
        oldest = time.time() - LEFTOVER_AGE
        with contextlib.suppress(OSError), os.scandir(self._path(TEMPORARY)) as entries:
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


def _source_size(source: Source) -> int:
    if isinstance(source, bytes):
        return len(source)
    return source.seek(0, os.SEEK_END)
