"""Packs on their way to a remote: local records checked, cut to what may leave the machine, put into pack
files.

A local record goes as it is when all its members are wanted. Otherwise, and where it is small, the wanted
members are gathered with their neighbours into new frames. Nothing else that happens to share a frame with
them is sent. The same records in the same order give the same packs, so that an upload that was interrupted
finds those it already sent under the same names.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.errors import CorruptObjectError, MissingObjectError
from gds_lfs.remote.base import pack_key
from gds_lfs.remote.shard import Item, Place
from gds_lfs.store.pack import (
    CHUNKS,
    FRAME_MEMBERS,
    FRAME_SIZE,
    MANIFESTS,
    NO_BASE,
    PackStream,
    make_record,
    unpack,
)
from gds_lfs.store.threads import bundles, ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.content.manifest import Manifest
    from gds_lfs.remote.draft import Draft
    from gds_lfs.store.catalog import Place as LocalPlace
    from gds_lfs.store.local import LocalStore
    from gds_lfs.store.pack import Header, Record

__all__ = ["Frame", "PackFile", "cut_chunks", "cut_manifests", "fill_packs"]

#: A record with fewer raw bytes than this is gathered with others instead of going as it is.
SMALL_RECORD = 256 * 1024
#: A pack that has reached this size is closed; it may be larger by one record.
PACK_SIZE = 32 << 20


class PackFile:
    """A pack being put together in a draft, which it closes. What writes raises what the draft does."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        with contextlib.ExitStack() as on_error:
            on_error.callback(draft.close)
            self._stream = PackStream(draft.write)
            on_error.pop_all()

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._stream.size

    def add(self, record: Record) -> None:
        """Append one record."""
        self._stream.add(record)

    def digest(self) -> None:
        """Hash what was added by now: `seal` has less to do then."""
        self._stream.digest()

    def seal(self) -> None:
        """Write the footer; the pack has its id from now on."""
        self.id = self._stream.finish()
        headers = (header for _, header in self._stream.entries)
        self.raw_size = sum(header.raw_size for header in headers if header.kind == CHUNKS)

    def items(self) -> list[Item]:
        """What the sealed pack holds, for the index."""
        return [
            Item(header.kind, oid, place)
            for offset, header in self._stream.entries
            for place in [self._place(header, offset)]
            for oid, _ in header.members
        ]

    def put(self) -> None:
        """Store the sealed pack under its id. Raises RemoteError; may be called again."""
        self.draft.put(pack_key(self.id))

    def close(self) -> None:
        """Give up the draft."""
        self.draft.close()

    def _place(self, header: Header, offset: int) -> Place:
        return Place(self.id, offset, header.record_size, header.base if header.base != NO_BASE else b"")


class Frame:
    """Members on their way into one new record of at most `limit` bytes (a larger member has one of its own)."""

    def __init__(self, kind: int, limit: int = FRAME_SIZE) -> None:
        self._kind = kind
        self._limit = limit
        self._items: list[tuple[Oid, bytes | memoryview]] = []
        self._size = 0

    def add(self, items: Iterable[tuple[Oid, bytes | memoryview]]) -> Iterator[Record]:
        """Take members in; gives the records that are full."""
        for oid, data in items:
            if self._size + len(data) > self._limit or len(self._items) >= FRAME_MEMBERS:
                yield from self.flush()
            self._items.append((oid, data))
            self._size += len(data)

    def flush(self) -> Iterator[Record]:
        """The record of what is left, if anything is."""
        if self._items:
            yield make_record(self._kind, self._items)
            self._items, self._size = [], 0


def cut_chunks(store: LocalStore, places: Mapping[Oid, LocalPlace], is_base: Callable[[Oid], bool]) -> Iterator[Record]:
    """Records that hold just the chunks of `places`, each once, roughly in that order; all of them checked.

    `is_base` tells whether the remote has a chunk in a form that needs no base itself. Raises CorruptObjectError,
    and MissingObjectError where a chunk has gone meanwhile.
    """
    needed = set(places)
    sent: set[Oid] = set()
    plain: set[Oid] = set()
    frame = Frame(CHUNKS)
    for found in _read_all(store, places):
        if isinstance(found, _Damaged):
            store.set_aside(found.place)
            raise found.error
        record, items = found
        members = {oid for oid, _ in record.header.members}
        wanted = (members & needed) - sent
        whole = wanted == members and _goes_as_it_is(record.header, plain, is_base)
        if whole:
            yield record
        else:
            yield from frame.add(item for item in items if item[0] in wanted)
        if not whole or record.header.base == NO_BASE:
            plain.update(wanted)
        sent.update(wanted)
    yield from frame.flush()
    if needed - sent:  # the index must not name a manifest whose chunks were left out
        raise _gone(next(iter(needed - sent)))


class _Unpacked(NamedTuple):
    record: Record
    items: list[tuple[Oid, memoryview]]


class _Damaged(NamedTuple):
    place: LocalPlace
    error: CorruptObjectError


def _read_all(store: LocalStore, places: Mapping[Oid, LocalPlace]) -> Iterator[_Unpacked | _Damaged]:
    """The records at these places, each once, in order, checked a few ahead in other threads."""

    def read(batch: list[tuple[Oid, LocalPlace]]) -> list[_Unpacked | _Damaged]:
        results: list[_Unpacked | _Damaged] = []
        for oid, place in batch:
            try:
                record = _read(store, oid, place)
                results.append(_Unpacked(record, unpack(record, store.chunk)))
            except CorruptObjectError as error:
                named = error.oid if error.oid in places else oid
                results.append(_Damaged(place, CorruptObjectError(str(error), named)))
        return results

    distinct: dict[tuple[Path, int], tuple[Oid, LocalPlace]] = {}
    for oid, place in places.items():
        distinct.setdefault((place.path, place.offset), (oid, place))
    batches = bundles(distinct.values(), lambda found: found[1].length, FRAME_SIZE)
    for batch in ordered(batches, read):
        yield from batch


def _read(store: LocalStore, oid: Oid, place: LocalPlace) -> Record:
    try:
        return store.read_record(place)
    except MissingObjectError:
        # Its pack got another name: a `git add` that ended meanwhile sealed it, for one.
        again = store.locate(CHUNKS, [oid]).get(oid)
        if again is None:
            raise _gone(oid) from None
        return store.read_record(again)


def _gone(oid: Oid) -> MissingObjectError:
    return MissingObjectError(f"chunk {oid.hex()} has gone from the local store", oid)


def _goes_as_it_is(header: Header, plain: set[Oid], is_base: Callable[[Oid], bool]) -> bool:
    if header.base != NO_BASE:
        return header.base in plain or is_base(header.base)
    return header.raw_size >= SMALL_RECORD


def cut_manifests(manifests: Iterable[Manifest]) -> Iterator[Record]:
    """Records that hold these manifests, in that order."""
    frame = Frame(MANIFESTS)
    for manifest in manifests:
        yield from frame.add([(manifest.oid, manifest.encode())])
    yield from frame.flush()


def fill_packs(records: Iterable[Record], new_draft: Callable[[], Draft]) -> Iterator[PackFile]:
    """Sealed packs of these records; whoever takes one closes it. Raises what a draft raises."""
    pack: PackFile | None = None
    try:
        for record in records:
            pack = pack or PackFile(new_draft())
            pack.add(record)
            if pack.size >= PACK_SIZE:
                pack.seal()
                full, pack = pack, None
                yield full
        if pack is not None:
            pack.seal()
            full, pack = pack, None
            yield full
    finally:
        if pack is not None:
            pack.close()
