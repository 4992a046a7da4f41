"""Uploads of single files that come one after another, gathered into packs.

A file is cut into chunks as it is read, and only chunks that neither the remote nor an earlier file has are kept: they
go straight into packs, so that no second copy of the file is made on the way. `flush` puts the packs on the remote and
then the shard that names them, as every upload does (see upload.py); until then nobody sees any of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import deque
from typing import TYPE_CHECKING

from gds_lfs.content import chunker
from gds_lfs.content.hashing import EMPTY, oid_of
from gds_lfs.content.manifest import Manifest
from gds_lfs.errors import CorruptObjectError, GitDatasetsError, MissingObjectError, RemoteError
from gds_lfs.remote.base import check_format, index_key
from gds_lfs.remote.shard import encode
from gds_lfs.store.pack import CHUNKS, MANIFESTS
from gds_lfs.store.threads import bundles
from gds_lfs.transfer.consolidate import MAX_SHARDS
from gds_lfs.transfer.index import RemoteIndex
from gds_lfs.transfer.packing import PACK_SIZE, Frame, PackFile
from gds_lfs.transfer.queue import DEFAULT_RETRY, Retry, Throttle, retrying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Executor, Future
    from io import FileIO
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.remote.base import Remote
    from gds_lfs.remote.shard import Item
    from gds_lfs.store.pack import Record

__all__ = ["Outbox"]

#: Chunks are looked up on the remote in groups of about so many bytes.
_GROUP = 1 << 20
#: Bytes of small files that are compressed together.
_FRAME = 256 * 1024
#: Progress is told after every so many bytes.
_STEP = 8 << 20


class Outbox:
    """Files on their way to one remote. Nothing is asked of the remote before the first `add`.

    `begin_anew` is for one that is known to hold others: what the user is told to do should it be empty.
    """

    def __init__(
        self,
        remote: Remote,
        cache_dir: Path,
        scratch: Path,
        retry: Retry = DEFAULT_RETRY,
        begin_anew: str | None = None,
    ) -> None:
        self._remote = remote
        self._cache = cache_dir
        self._scratch = scratch
        self._retry = retry
        self._begin_anew = begin_anew
        self._throttle = Throttle(remote.parallel, retry)
        self._index: RemoteIndex | None = None
        self._present: dict[bytes, int] = {}
        self._guard = _Guard(self._forget)
        self._lost: list[Exception] = []
        self._unread: dict[Oid, tuple[int, str]] = {}
        self._frames = _frames()
        self._pack: PackFile | None = None
        self._moving: deque[tuple[PackFile, Future[None]]] = deque()
        self._pool: Executor | None = None
        self._items: list[Item] = []
        self._sizes: dict[bytes, int] = {}
        self._gathered: set[tuple[int, Oid]] = set()
        self._sent: set[tuple[int, Oid]] = set()
        self._shards: list[Oid] = []
        self._unmerged: list[Item] = []
        self._pack_sizes: dict[bytes, int] = {}
        self.size = 0
        self.bytes_sent = 0

    def add(self, oid: Oid, size: int, path: str, advance: Callable[[int], None]) -> bool:
        """Gather a file; False if the remote has it. See agent.Uploads."""
        with self._guard:
            if oid == EMPTY or self._is_there(oid):
                return False
            if oid in self._unread or (CHUNKS, oid) in self._gathered or (MANIFESTS, oid) in self._gathered:
                return True
            if size <= chunker.SMALL:
                self._unread[oid] = size, path
                self.size += size
            else:
                self._gather(oid, size, path, advance)
            return True

    def work(self) -> bool:
        """Read a small file. See agent.Uploads."""
        if not self._unread:
            return False
        with contextlib.suppress(Exception):  # every flush tells it
            self._read_one()
        return True

    def _read_one(self) -> None:
        oid = next(iter(self._unread))
        size, path = self._unread.pop(oid)
        if (CHUNKS, oid) in self._gathered:  # a large file has this very chunk
            return
        try:
            data = _read_small(path, size, oid)
        except Exception as error:
            self._lost.append(error)
            return
        with self._guard:
            self._gathered.add((CHUNKS, oid))
            self._write(self._frames[CHUNKS].add([(oid, data)]))

    def flush(self) -> None:
        """Send what is gathered, packs first."""
        with self._guard:
            while self._unread:
                self._read_one()
            for frame in self._frames.values():
                self._write(frame.flush())
            if self._pack is not None:
                self._pack.seal()
            while self._moving:
                self._finish_one()
            if self._pack is not None:
                self._put(self._pack)
                self._finish(self._pack)
            if self._items:
                self._name()
            self._sent |= self._gathered
            self._forget()
        if self._lost:
            raise self._loss()

    def _loss(self) -> Exception:
        first, *others = self._lost
        if others and isinstance(first, GitDatasetsError):
            return type(first)(f"{first} (and {len(others)} more)")
        return first

    def close(self) -> None:
        """Give everything back, and leave one shard where a long session wrote many."""
        self._forget()
        if len(self._shards) > 1 and self._guard.failed is None:
            with contextlib.suppress(RemoteError):  # the remote is whole without it
                self._merge()
        if self._pool is not None:
            self._pool.shutdown()

    def _is_there(self, oid: Oid) -> bool:
        """Whether the remote can give a file back."""
        if (CHUNKS, oid) in self._sent or (MANIFESTS, oid) in self._sent:
            return True
        index = self._open()
        if not index.shards:
            return False
        if not index.missing(CHUNKS, [oid]):
            return True
        # Where packs are gone, a manifest alone proves nothing: reading the file again tells what is missing.
        return not index.absent_packs and not index.missing(MANIFESTS, [oid])

    def _open(self) -> RemoteIndex:
        if self._index is None:
            index = RemoteIndex(self._remote, self._cache, self._retry)
            self._present = index.prepare_push(self._begin_anew)
            self._remote.create()
            retrying(lambda: check_format(self._remote, create=True), self._retry)
            self._index = index
        return self._index

    def _gather(self, oid: Oid, size: int, path: str, advance: Callable[[int], None]) -> None:
        with _opened(path, oid) as file:
            whole = hashlib.sha256()
            read = 0

            def source(wanted: int) -> bytes:
                nonlocal read
                piece = file.read(wanted) or b""
                whole.update(piece)
                if (read + len(piece)) // _STEP > read // _STEP and read + len(piece) < size:
                    advance(read + len(piece))
                read += len(piece)
                return piece

            listed: list[tuple[Oid, int]] = []
            for group in bundles(chunker.split(source), len, _GROUP):
                pairs = [(oid_of(chunk), chunk) for chunk in group]
                listed += [(chunk, len(content)) for chunk, content in pairs]
                self._take(CHUNKS, pairs)
        if read != size or whole.digest() != oid:
            raise _corrupt(path, oid)
        if len(listed) > 1:
            self._take(MANIFESTS, [(oid, Manifest(oid, size, tuple(listed)).encode())])

    def _take(self, kind: int, pairs: list[tuple[Oid, bytes]]) -> None:
        """Keep those objects that are new."""
        new = {oid: data for oid, data in pairs if (kind, oid) not in self._gathered and (kind, oid) not in self._sent}
        if new and self._open().shards:
            absent = self._open().missing(kind, new.keys())
            new = {oid: data for oid, data in new.items() if oid in absent}
        self._gathered.update((kind, oid) for oid in new)
        self.size += sum(map(len, new.values()))
        self._write(self._frames[kind].add(new.items()))

    def _write(self, records: Iterable[Record]) -> None:
        for record in records:
            if self._pack is None:
                self._pack = PackFile(self._remote.draft(self._scratch))
            self._pack.add(record)
            self._pack.digest()
            if self._pack.size >= PACK_SIZE:
                self._send_pack(self._pack)

    def _send_pack(self, pack: PackFile) -> None:
        """Have the full pack sent while the next is filled."""
        pack.seal()
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._remote.parallel)
        self._moving.append((pack, self._pool.submit(self._put, pack)))
        self._pack = None
        while len(self._moving) > self._remote.parallel:
            self._finish_one()

    def _put(self, pack: PackFile) -> None:
        if self._present.get(pack.id) != pack.size:  # what an interrupted session sent goes under the same names
            self._throttle.perform(pack.put)

    def _finish_one(self) -> None:
        pack, moving = self._moving[0]
        moving.result()
        self._moving.popleft()  # before that it is closed by nobody: it is being read
        self._finish(pack)

    def _finish(self, pack: PackFile) -> None:
        """Note what a pack that is on the remote holds."""
        self._items += pack.items()
        self._sizes[pack.id] = pack.size
        self.bytes_sent += pack.size
        pack.close()

    def _name(self) -> None:
        """Write the shard that names what was sent."""
        self._unmerged += self._items
        self._pack_sizes.update(self._sizes)
        self._write_shard(self._items, self._sizes)
        if len(self._shards) > MAX_SHARDS:
            self._merge()

    def _merge(self) -> None:
        """One shard in place of those that this session wrote: first the new one, then the old ones go."""
        old = list(self._shards)
        self._shards = []
        self._write_shard(self._unmerged, self._pack_sizes)
        for shard in set(old).difference(self._shards):
            with contextlib.suppress(RemoteError):  # someone who may not delete just leaves a longer list
                self._remote.delete(index_key(shard))

    def _write_shard(self, items: Iterable[Item], sizes: Mapping[bytes, int]) -> None:
        data = encode(items, sizes)
        shard = oid_of(data)
        retrying(lambda: self._remote.put(index_key(shard), data), self._retry)
        self.bytes_sent += len(data)
        self._shards.append(shard)

    def _forget(self) -> None:
        """Nothing is gathered any more."""
        while self._moving:
            pack, moving = self._moving.popleft()
            with contextlib.closing(pack), contextlib.suppress(Exception):
                moving.result()
        if self._pack is not None:
            self._pack.close()
            self._pack = None
        self._frames = _frames()
        self._unread.clear()
        self._gathered.clear()
        self._items, self._sizes = [], {}
        self.size = 0


class _Guard:
    """After an error that may have cost something gathered, nothing counts as gathered, and nothing more is taken: a
    remote that is down, or a full disk, would only be asked again for each of thousands of files. That is any error but
    those of a file, which cost only that file.
    """

    def __init__(self, forget: Callable[[], None]) -> None:
        self._forget = forget
        self.failed: BaseException | None = None

    def __enter__(self) -> None:
        if self.failed is not None:
            raise self.failed

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None and not isinstance(error, (MissingObjectError, CorruptObjectError)):
            self.failed = error
            self._forget()


def _frames() -> dict[int, Frame]:
    # Not as large as they may be: a record that is complete is hashed while git-lfs gets the next file ready.
    return {kind: Frame(kind, _FRAME) for kind in (CHUNKS, MANIFESTS)}


def _read_small(path: str, size: int, oid: Oid) -> bytes:
    """A small file, with as few calls as there can be."""
    descriptor = _descriptor(path, oid)
    try:
        data = os.read(descriptor, size + 1)
    finally:
        os.close(descriptor)
    if len(data) != size or oid_of(data) != oid:
        raise _corrupt(path, oid)
    return data


def _opened(path: str, oid: Oid) -> FileIO:
    return open(_descriptor(path, oid), "rb", buffering=0)


def _descriptor(path: str, oid: Oid) -> int:
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe there waits for no writer
    try:
        return os.open(path, flags)
    except FileNotFoundError as error:
        raise _missing(path, oid) from error
    except OSError as error:
        raise MissingObjectError(f"{path} cannot be read: {error.strerror}", oid) from error


def _missing(path: str, oid: Oid) -> MissingObjectError:
    return MissingObjectError(f"{path} is gone: fetch the object again, or add the file again", oid)


def _corrupt(path: str, oid: Oid) -> CorruptObjectError:
    return CorruptObjectError(f"{path} is not the object sha256:{oid.hex()}: `git lfs fsck` tells more", oid)
