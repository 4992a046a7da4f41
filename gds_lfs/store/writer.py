"""The writing half of the store: content in, records out, each writer in a pack of its own.

A large content is read and cut by one thread, hashed by others, and what is not stored yet is compressed by them in
frames. Looking up and writing stay in the calling thread, in order, and so does everything about a small content but
the compression of frames.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import closing
from io import BytesIO
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content import chunker
from gds_lfs.content.hashing import EMPTY, Oid, oid_of
from gds_lfs.content.manifest import Manifest
from gds_lfs.content.pointer import Pointer
from gds_lfs.errors import StoreWriteError
from gds_lfs.store import pack
from gds_lfs.store.pack import FRAME_MEMBERS, FRAME_SIZE
from gds_lfs.store.sources import Source, read_files
from gds_lfs.store.temp import TempPack
from gds_lfs.store.threads import AHEAD, Threads, ahead, bundles

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType

PACK_SIZE = 64 * 1024 * 1024

_FILES_AT_ONCE = 64
_LARGE = 64 * 1024
"""Bytes of a record whose hashing is worth another thread."""


class Added(NamedTuple):
    """A file that was stored, and what its open descriptor's stat said before it was read."""

    pointer: Pointer
    stat: os.stat_result


class StoreWriter:
    """From `LocalStore.writer`; a context manager that seals at its end unless an exception passes through.

    `framed=False`: content is complete in a file before `add` returns. `framed=True`: small contents are gathered and
    compressed together; what was added is in a file after `seal` only.

    An exception, or the end of the process, leaves the temporary pack for the next writer to recover. Everything that
    writes raises StoreWriteError where the disk does not take it. Not for use by several threads at a time.
    """

    def __init__(
        self,
        root: Path,
        stored: Callable[[int, Sequence[Oid]], Container[Oid]],
        sealed: Callable[[Path, Sequence[pack.Entry]], None],
        *,
        framed: bool,
    ) -> None:
        self._root = root
        self._stored = stored
        self._sealed = sealed
        self._framed = framed
        self._threads = Threads()
        self._temp: TempPack | None = None
        self._written: set[tuple[int, Oid]] = set()
        self._pending: set[tuple[int, Oid]] = set()
        self._failed: BaseException | None = None
        self._frames = {kind: _Frame() for kind in (pack.CHUNKS, pack.MANIFESTS)}
        self._encoding: deque[Future[pack.Record]] = deque()
        self._sealing: deque[Future[None]] = deque()
        self._guard = _Guard(self._check, self._give_up)

    def add(self, read: Callable[[int], bytes]) -> Pointer:
        """Store what `read` gives (at most n bytes for `read(n)`, b"" at the end only)."""
        with self._guard:
            source = Source(read, self._threads)
            chunks = chunker.split(source.read)
            first = next(chunks, b"")
            if source.size <= chunker.SMALL:
                pointer = Pointer(oid_of(first), len(first))
                self._put_chunks([pointer.oid], [first])
            else:
                pointer = self._add_large(source, chain([first], chunks))
            if not self._framed:
                self._settle()
            return pointer

    def add_bytes(self, data: bytes) -> Pointer:
        """Store `data`."""
        if len(data) > chunker.SMALL:
            return self.add(BytesIO(data).read)
        with self._guard:
            pointer = Pointer(oid_of(data), len(data))
            if self._framed:
                self._put_chunks([pointer.oid], [data])
            elif self._is_fresh(pack.CHUNKS, pointer.oid):  # a filter's way: nothing to gather
                self._write(pack.make_record(pack.CHUNKS, [(pointer.oid, data)]))
            return pointer

    def add_files(self, paths: Iterable[os.PathLike[str] | str | bytes]) -> Iterator[Added]:
        """Store regular files, in order. Raises OSError for one that cannot be read.

        Small ones are read and hashed in this thread: handing them over costs more than it gains.
        """
        remaining = iter(paths)
        while batch := list(islice(remaining, _FILES_AT_ONCE)):
            files = read_files(batch)
            small = [file.data for file in files if file.data is not None]
            pointers = [Pointer(oid_of(data), len(data)) for data in small]
            with self._guard:
                self._put_chunks([pointer.oid for pointer in pointers], small)
                if not self._framed:
                    self._settle()
            known = iter(pointers)
            for file in files:
                yield self._add_file(file.path) if file.data is None else Added(next(known), file.stat)

    def add_record(self, record: pack.Record) -> None:
        """Store a record as it is, which `pack.unpack` has checked, unless all its members are stored."""
        header = record.header
        with self._guard:
            if self._fresh(header.kind, [oid for oid, _ in header.members]):
                self._write(record)

    def digest(self) -> None:
        """Hash what was written by now, when there is time for it."""
        if self._temp is not None:
            self._temp.digest()

    def seal(self) -> None:
        """Complete what was added: frames written, packs in their place, the catalog told."""
        with self._guard:
            self._settle()
            if self._temp is not None:
                temp, self._temp = self._temp, None
                temp.seal(self._root / "packs", self._sealed)
            while self._sealing:
                self._sealing.popleft().result()

    def __enter__(self) -> StoreWriter:  # noqa: PYI034 (Self came with Python 3.11)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.seal()
        finally:
            self._threads.shutdown()
            if self._temp is not None:
                self._temp.abandon()

    def _add_file(self, path: os.PathLike[str] | str | bytes) -> Added:
        with open(path, "rb", buffering=0) as file:
            stat = os.fstat(file.fileno())
            return Added(self.add(lambda size: file.read(size) or b""), stat)

    def _add_large(self, source: Source, chunks: Iterable[bytes]) -> Pointer:
        listed: list[tuple[Oid, int]] = []
        hashing: deque[tuple[list[bytes], Future[list[Oid]]]] = deque()
        with closing(ahead(self._threads.cutter, bundles(chunks, len, FRAME_SIZE), AHEAD)) as groups:
            for group in groups:
                hashing.append((group, self._threads.pool.submit(_hash_all, group)))
                if len(hashing) > AHEAD:
                    self._put_group(*hashing.popleft(), listed)
        while hashing:
            self._put_group(*hashing.popleft(), listed)
        oid = source.oid()
        if len(listed) > 1 and self._is_fresh(pack.MANIFESTS, oid):
            data = Manifest(oid, source.size, tuple(listed)).encode()
            if len(data) > pack.MAX_RAW:
                raise StoreWriteError(f"{source.size} bytes are too large a file: its list of chunks is above 256 MiB")
            self._put(pack.MANIFESTS, oid, data)
        return Pointer(oid, source.size)

    def _put_group(self, group: list[bytes], ids: Future[list[Oid]], listed: list[tuple[Oid, int]]) -> None:
        listed.extend((oid, len(data)) for oid, data in zip(ids.result(), group, strict=True))
        self._put_chunks(ids.result(), group)

    def _put_chunks(self, ids: list[Oid], chunks: list[bytes]) -> None:
        fresh = self._fresh(pack.CHUNKS, ids)
        for oid, data in zip(ids, chunks, strict=True):
            if oid in fresh:
                fresh.remove(oid)
                self._put(pack.CHUNKS, oid, data)

    def _is_fresh(self, kind: int, oid: Oid) -> bool:
        key = kind, oid
        if key in self._written or key in self._pending or oid == EMPTY:
            return False
        return oid not in self._stored(kind, [oid])

    def _fresh(self, kind: int, ids: Iterable[Oid]) -> set[Oid]:
        """Those that are neither stored nor on their way."""
        unknown = [oid for oid in ids if (kind, oid) not in self._written and (kind, oid) not in self._pending]
        stored = self._stored(kind, unknown) if unknown else ()
        return {oid for oid in unknown if oid not in stored and oid != EMPTY}

    def _put(self, kind: int, oid: Oid, data: bytes) -> None:
        frame = self._frames[kind]
        if frame.items and (frame.size + len(data) > FRAME_SIZE or len(frame.items) >= FRAME_MEMBERS):
            self._flush(kind)
            frame = self._frames[kind]
        frame.items.append((oid, data))
        frame.size += len(data)
        self._pending.add((kind, oid))

    def _flush(self, kind: int) -> None:
        """Have a full frame compressed, and write those that are."""
        self._encoding.append(self._threads.pool.submit(pack.make_record, kind, self._frames[kind].items))
        self._frames[kind] = _Frame()
        while len(self._encoding) > AHEAD or (self._encoding and self._encoding[0].done()):
            self._write(self._encoding.popleft().result())

    def _settle(self) -> None:
        """Write whatever is gathered."""
        while self._encoding:
            self._write(self._encoding.popleft().result())
        for kind, frame in self._frames.items():
            if frame.items:
                self._write(pack.make_record(kind, frame.items))
                self._frames[kind] = _Frame()
        self._pending.clear()

    def _write(self, record: pack.Record) -> None:
        if self._temp is None:
            self._temp = TempPack(self._root / "tmp")
        self._temp.append(record)
        if record.header.stored_size >= _LARGE:
            self._threads.pool.submit(self._temp.digest)
        kind = record.header.kind
        self._written.update([(kind, oid) for oid, _ in record.header.members])
        if self._temp.size >= PACK_SIZE:
            temp, self._temp = self._temp, None
            self._sealing.append(self._threads.sealer.submit(temp.seal, self._root / "packs", self._sealed))
            while len(self._sealing) > AHEAD:
                self._sealing.popleft().result()

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _give_up(self, error: BaseException) -> None:
        """After a failed write, nothing that was gathered counts as stored any more."""
        if self._framed:  # contents that were promised are lost: there is no going on
            self._failed = error
        if self._temp is not None and not isinstance(error, Exception):
            self._temp.abandon()  # an interrupt may have come in the middle of a record
            self._temp = None
        self._encoding.clear()
        self._frames = {kind: _Frame() for kind in self._frames}
        self._pending.clear()


class _Guard:
    """Around whatever a writer does: one that has failed does no more. (A generator would cost a small file more.)"""

    def __init__(self, check: Callable[[], None], give_up: Callable[[BaseException], None]) -> None:
        self._check = check
        self._give_up = give_up

    def __enter__(self) -> None:
        self._check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An OSError is from what is being read; what other contents gave is unharmed.
        if error is not None and not isinstance(error, OSError):
            self._give_up(error)


class _Frame:
    """Objects of a kind that are to be compressed together."""

    def __init__(self) -> None:
        self.items: list[tuple[Oid, bytes]] = []
        self.size = 0


def _hash_all(chunks: list[bytes]) -> list[Oid]:
    return [oid_of(chunk) for chunk in chunks]
