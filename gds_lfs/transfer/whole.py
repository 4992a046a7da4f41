"""Packs of which nearly all is wanted, taken over as they are: a clone's way.

The parts of such a pack are checked, record by record, and written where they stand in it, by the threads that receive
them. Nothing is put together anew, and the pack keeps its name. Whatever is wrong with a pack, it is given up here: the
records that came are kept, and the others are asked for one by one, which tells what is missing or damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.errors import CorruptObjectError, GitDatasetsError
from gds_lfs.store.pack import check_part
from gds_lfs.transfer.ranges import GAP, MAX_SIZE, Range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gds_lfs.content.hashing import Oid
    from gds_lfs.remote.shard import Place
    from gds_lfs.store.local import LocalStore
    from gds_lfs.store.pack import Entry
    from gds_lfs.store.temp import IncomingPack

__all__ = ["Part", "WholePack", "whole_packs"]

SMALLEST = 4 << 20
"""Bytes; records of smaller packs are gathered in one pack of our own."""
_UNWANTED = 16
"""Up to this part of a pack comes along unasked for."""


class Part(NamedTuple):
    """A request for a part of a pack that is taken whole."""

    pack: WholePack
    range: Range


class WholePack:
    """A pack on its way into the store. `receive` may be called from any thread."""

    def __init__(self, store: LocalStore, pack: bytes, size: int, places: dict[Place, list[Oid]]) -> None:
        self._store = store
        self._size = size
        self.id = pack
        self.places = places
        self.given_up = False
        self.taken = False
        self._incoming: IncomingPack | None = None
        self._entries: list[Entry] = []
        self._table: list[Entry] = []
        self._left = 0

    def parts(self) -> Iterator[Part]:
        """The requests, in order, for parts of much the same size: full packs are a little more than two of MAX_SIZE,
        and that little is not worth a request. None after it was given up. Raises StoreWriteError.
        """
        size = self._size / max(1, round(self._size / MAX_SIZE))
        starts = [0]
        for place in self.places:
            if place.offset >= size * len(starts):
                starts.append(place.offset)
        self._left = len(starts)
        for start, end in zip(starts, [*starts[1:], self._size], strict=True):
            if self.given_up:
                return
            if self._incoming is None:
                self._incoming = self._store.incoming()
            yield Part(self, Range(self.id, start, end - start, ()))

    def receive(self, part: Range, data: memoryview) -> list[Entry]:
        """Check and write a part; its records. Raises CorruptObjectError for whatever cannot be taken as it is."""
        try:
            entries, table = check_part(data, part.offset, self._store.chunk)
        except CorruptObjectError:
            raise
        except GitDatasetsError as error:  # a base that is not here, or an encoding that only a newer version knows
            raise CorruptObjectError(str(error)) from error
        assert self._incoming is not None  # `parts` made it
        self._incoming.write(part.offset, data)
        self._table = table or self._table
        return entries

    def took(self, entries: list[Entry]) -> None:
        """A part has come; with the last one the pack is the store's, unless it does not add up."""
        self._entries += entries
        self._left -= 1
        if self._left or self.given_up or self._incoming is None:
            return
        incoming, self._incoming = self._incoming, None
        name = self.id.hex()
        if self._is_as_listed() and not self._store.has_pack(name):
            self._store.adopt(incoming, name, self._table)
            self.taken = True
        else:
            incoming.abandon()

    def _is_as_listed(self) -> bool:
        """Whether the records are those of its own table, and hold what the index says."""
        headers = {entry.offset: entry.header for entry in self._entries}
        if sorted(self._entries) != self._table or len(headers) != len(self._entries):
            return False
        for place, oids in self.places.items():
            header = headers.get(place.offset)
            if header is None or not {oid for oid, _ in header.members}.issuperset(oids):
                return False
        return True

    def close(self) -> None:
        """Leave what came of a pack that is not the store's to recovery. No thread may be receiving any more."""
        if self._incoming is not None:
            self._incoming.abandon()
            self._incoming = None


def whole_packs(store: LocalStore, places: Mapping[Place, list[Oid]], sizes: Mapping[bytes, int]) -> list[WholePack]:
    """The packs of which these places, with what is wanted there, are nearly all; `sizes` are those of the packs."""
    by_pack: dict[bytes, dict[Place, list[Oid]]] = {}
    for place in sorted(places):
        by_pack.setdefault(place.pack, {})[place] = places[place]
    return [
        WholePack(store, pack, sizes[pack], found)
        for pack, found in by_pack.items()
        if sizes.get(pack, 0) >= SMALLEST
        and sizes[pack] - sum(place.length for place in found) <= max(GAP, sizes[pack] // _UNWANTED)
        and not store.has_pack(pack.hex())
    ]
