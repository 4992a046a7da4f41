"""Objects of a folder on their way to their names: a file of `tmp/`, flushed to the disk and renamed."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gds_lfs.errors import RemoteError

__all__ = ["TEMPORARY", "FileDraft"]

#: The keys of unfinished objects begin so.
TEMPORARY = "tmp/"


class FileDraft:
    """A draft (see draft.py) in the folder `root`, which must exist. `failed` words an error."""

    def __init__(self, root: Path, failed: Callable[[OSError], RemoteError]) -> None:
        self._root = os.fspath(root)
        self._failed = failed
        self._size = 0
        self._path = os.path.join(self._root, TEMPORARY, os.urandom(16).hex())
        # Not mkstemp: its mode 0600 would shut the colleagues out of a shared folder, whatever the umask.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            try:
                self._descriptor = os.open(self._path, flags, 0o666)
            except FileNotFoundError:
                _make_folder(os.path.dirname(self._path))
                self._descriptor = os.open(self._path, flags, 0o666)
        except OSError as error:
            raise failed(error) from error

    def write(self, data: bytes | memoryview) -> None:
        """Raises RemoteError."""
        self._size += len(data)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            raise self._failed(error) from error

    def put(self, key: str) -> None:
        """Raises RemoteError."""
        try:
            target = os.path.join(self._root, *key.split("/"))
            if _size(target) == self._size:
                return
            os.fsync(self._descriptor)
            self._end()
            self._rename(target)
            _sync_folder(os.path.dirname(target))
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Remove what was not put."""
        self._end()
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def _end(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _rename(self, target: str) -> None:
        try:
            try:
                os.replace(self._path, target)
            except FileNotFoundError:
                self._make_folders(target)
                os.replace(self._path, target)
        except PermissionError:
            # Windows refuses to replace a file that someone reads; it is the same object if it is as long.
            if _size(target) != self._size:
                raise

    def _make_folders(self, target: str) -> None:
        """Those between the root and the target; the root itself may be a drive that is gone."""
        folder = self._root
        for name in os.path.relpath(os.path.dirname(target), self._root).split(os.sep):
            folder = os.path.join(folder, name)
            _make_folder(folder)


def _make_folder(folder: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _sync_folder(folder: str) -> None:
    # Not every system can open or flush a folder; the rename is atomic without it.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
