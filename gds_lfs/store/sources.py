"""What is being stored, as it is read."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content import chunker
from gds_lfs.store.files import open_to_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from gds_lfs.content.hashing import Oid
    from gds_lfs.store.threads import Threads

_BLOCKS_AHEAD = 8


class Source:
    """A content being read: counts it and, once it is larger than one chunk, hashes it in another thread."""

    def __init__(self, read: Callable[[int], bytes], threads: Threads) -> None:
        self.size = 0
        self._read = read
        self._threads = threads
        self._digest = hashlib.sha256()
        self._unhashed: list[bytes] = []
        self._hashing: deque[Future[None]] = deque()

    def read(self, size: int) -> bytes:
        """At most `size` bytes; b"" at the end."""
        data = self._read(size)
        self.size += len(data)
        self._unhashed.append(data)
        if self.size > chunker.SMALL:
            self._hash()
        return data

    def oid(self) -> Oid:
        """The id of everything read."""
        self._hash()
        while self._hashing:
            self._hashing.popleft().result()
        return self._digest.digest()

    def _hash(self) -> None:
        blocks, self._unhashed = self._unhashed, []
        self._hashing.append(self._threads.hasher.submit(self._update, blocks))
        if len(self._hashing) > _BLOCKS_AHEAD:
            self._hashing.popleft().result()

    def _update(self, blocks: list[bytes]) -> None:
        for block in blocks:
            self._digest.update(block)


class Read(NamedTuple):
    """A file that was read, and its open descriptor's stat from before; `data` is None where it is no one chunk."""

    path: os.PathLike[str] | str | bytes
    stat: os.stat_result
    data: bytes | None


def read_files(paths: Iterable[os.PathLike[str] | str | bytes]) -> list[Read]:
    """All are opened before the first is read, so that the disk is asked for many at a time. Raises OSError."""
    opened: list[tuple[os.PathLike[str] | str | bytes, int]] = []
    try:
        for path in paths:
            descriptor = open_to_read(path)
            opened.append((path, descriptor))
            _announce(descriptor)
        return [_read_file(path, descriptor) for path, descriptor in opened]
    finally:
        for _, descriptor in opened:
            os.close(descriptor)


def _announce(descriptor: int) -> None:
    """Ask the system to read ahead; no platform has to know how."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, 0, chunker.SMALL, os.POSIX_FADV_WILLNEED)


def _read_file(path: os.PathLike[str] | str | bytes, descriptor: int) -> Read:
    stat = os.fstat(descriptor)
    data = os.read(descriptor, min(stat.st_size, chunker.SMALL) + 1)
    if len(data) != stat.st_size:  # a growing file, a device, or a read that was cut short
        while len(data) <= chunker.SMALL and (more := os.read(descriptor, chunker.SMALL + 1 - len(data))):
            data += more
    return Read(path, stat, data if len(data) <= chunker.SMALL else None)
