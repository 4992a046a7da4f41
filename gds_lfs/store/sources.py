"""What is being stored, as it is read, and the threads that help with it."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gds_lfs.content import chunker
from gds_lfs.content.hashing import EMPTY, Oid, oid_of
from gds_lfs.content.pointer import Pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Executor, Future

T = TypeVar("T")

_BLOCKS_AHEAD = 8
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class Added(NamedTuple):
    """A file that was stored, and what its open descriptor's stat said before it was read."""

    pointer: Pointer
    stat: os.stat_result


class Threads:
    """Executors, made when first asked for: most commands store one small file."""

    @cached_property
    def hasher(self) -> Executor:
        """One thread, so that what is submitted happens in order."""
        return self._executor(1)

    @cached_property
    def cutter(self) -> Executor:
        """One thread, which reads a large content and cuts it."""
        return self._executor(1)

    @cached_property
    def sealer(self) -> Executor:
        """One thread, for what waits on the disk."""
        return self._executor(1)

    @cached_property
    def pool(self) -> Executor:
        """As many threads as there are processors."""
        return self._executor(os.cpu_count() or 1)

    def shutdown(self) -> None:
        """Wait for what is under way."""
        for executor in vars(self).values():
            executor.shutdown()
        vars(self).clear()

    def _executor(self, threads: int) -> Executor:
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(threads)


def ahead(executor: Executor, items: Iterator[T], count: int) -> Generator[T, None, None]:
    """The items, each made by the executor's one thread, up to `count` of them before they are asked for.

    Closing it waits for the one that is being made, so that nobody reads behind the caller's back.
    """
    tasks: deque[Future[T | None]] = deque()
    try:
        while True:
            while len(tasks) < count:
                tasks.append(executor.submit(next, items, None))
            item = tasks.popleft().result()
            if item is None:
                return
            yield item
    finally:
        for task in tasks:
            if not task.cancel():
                task.exception()


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
    """A file that was read; `data` is None where it is too large for one chunk."""

    path: os.PathLike[str] | str | bytes
    data: bytes | None
    added: Added


def read_files(paths: Iterable[os.PathLike[str] | str | bytes]) -> list[Read]:
    """All are opened before the first is read, so that the disk is asked for many at a time."""
    opened: list[tuple[os.PathLike[str] | str | bytes, int]] = []
    try:
        for path in paths:
            descriptor = os.open(path, _FLAGS)
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
    if len(data) > chunker.SMALL:
        return Read(path, None, Added(Pointer(EMPTY, 0), stat))
    return Read(path, data, Added(Pointer(oid_of(data), len(data)), stat))
