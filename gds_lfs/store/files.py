"""Files of the store: reading at an offset, whole writes, and what survives a power cut."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_OPEN_FILES = 32


def read_at(descriptor: int, offset: int, size: int) -> bytes:
    """At most `size` bytes from `offset`, fewer only where the file ends. Moves the file's position."""
    os.lseek(descriptor, offset, os.SEEK_SET)
    data = os.read(descriptor, size)
    while len(data) < size and (more := os.read(descriptor, size - len(data))):
        data += more
    return data


def open_to_read(path: os.PathLike[str] | str | bytes) -> int:
    """A descriptor of the file; raises OSError."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))


class OpenFiles:
    """Recently read files, kept open. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._descriptors: OrderedDict[Path, int] = OrderedDict()
        weakref.finalize(self, _close_all, self._descriptors)

    def read(self, path: Path, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset` of the file; raises OSError."""
        with self._lock:
            descriptor = self._descriptors.get(path)
            if descriptor is None:
                descriptor = self._descriptors[path] = open_to_read(path)
                if len(self._descriptors) > _OPEN_FILES:
                    os.close(self._descriptors.popitem(last=False)[1])
            else:
                self._descriptors.move_to_end(path)
            return read_at(descriptor, offset, size)

    def forget(self, path: Path) -> None:
        """Close a file that is about to be moved or removed."""
        with self._lock:
            descriptor = self._descriptors.pop(path, None)
            if descriptor is not None:
                os.close(descriptor)

    def close(self) -> None:
        """Close them all."""
        with self._lock:
            _close_all(self._descriptors)


def _close_all(descriptors: OrderedDict[Path, int]) -> None:
    while descriptors:
        os.close(descriptors.popitem()[1])
