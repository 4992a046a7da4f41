"""Codec of index shards: which pack of the remote holds what, and where.

A shard is immutable and named by the SHA-256 of its bytes. All numbers are little-endian; every table has
rows of one size, so where anything stands follows from the counts at the start, and a part can be read by
range::

    header      magic "GDSI", u8 version = 1, 3 zero bytes,
                u32 packs, u32 bases, u32 records, u32 sections
    packs       per pack: id (32 bytes), u64 size; ascending by id
    bases       per base: id (32 bytes); ascending
    records     per record: u32 pack row, u64 offset, u32 length, u32 base row + 1 (0 if it is complete in
                itself); ascending by pack row and offset
    sections    per kind: u32 kind, u32 count; ascending by kind, count > 0
    for each kind, in that order:
      fan-out   256 x u32: how many ids have a first byte of at most 0, 1, ... 255
      ids       per id: 32 bytes; ascending
      places    per id, in that order: u32 record row

A kind is the kind of record that holds the id (see the pack format). Every pack, base and record that is
listed is named at least once, rows are unique and the length is exact: a given content has one encoding.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import mmap
    from collections.abc import Collection, Iterable, Iterator, Mapping

__all__ = ["MAGIC", "Item", "MalformedShardError", "Place", "Shard", "encode"]

MAGIC = b"GDSI"
VERSION = 1

ID_SIZE = 32
_HEADER = struct.Struct("<4sB3xIIII")
_PACK = struct.Struct("<32sQ")
_RECORD = struct.Struct("<IQII")
_SECTION = struct.Struct("<II")
_FAN_OUT = struct.Struct("<256I")
_ID = struct.Struct("32s")
_ROW = struct.Struct("<I")

# Building a table of a whole section costs about this many times less than searching it, per id.
_SCAN_FACTOR = 16


class MalformedShardError(ValueError):
    """Bytes that are no index shard of a known version."""


class Place(NamedTuple):
    """Where a record stands: `length` bytes from `offset` of a pack; `base` is the chunk it needs, if any."""

    pack: bytes
    offset: int
    length: int
    base: bytes = b""


class Item(NamedTuple):
    """One thing a shard knows: the record that holds the object `id` of this kind."""

    kind: int
    id: bytes
    place: Place


def encode(items: Iterable[Item], pack_sizes: Mapping[bytes, int]) -> bytes:
    """The shard that holds these items; `pack_sizes` knows at least the packs they name.

    Raises ValueError if an id has two places within its kind.
    """
    by_kind: dict[int, dict[bytes, Place]] = {}
    for kind, oid, place in items:
        if by_kind.setdefault(kind, {}).setdefault(oid, place) != place:
            raise ValueError(f"two places for {oid.hex()}")
    places = sorted({place for section in by_kind.values() for place in section.values()})
    packs = sorted({place.pack for place in places})
    bases = sorted({place.base for place in places if place.base})
    pack_rows = {pack: row for row, pack in enumerate(packs)}
    base_rows = {base: row + 1 for row, base in enumerate(bases)}
    rows = {place: row for row, place in enumerate(places)}
    kinds = sorted(by_kind)
    out = [_HEADER.pack(MAGIC, VERSION, len(packs), len(bases), len(places), len(kinds))]
    out.extend(_PACK.pack(pack, pack_sizes[pack]) for pack in packs)
    out.extend(bases)
    for pack, offset, length, base in places:
        out.append(_RECORD.pack(pack_rows[pack], offset, length, base_rows.get(base, 0)))
    out.extend(_SECTION.pack(kind, len(by_kind[kind])) for kind in kinds)
    for kind in kinds:
        out.extend(_encode_section(by_kind[kind], rows))
    return b"".join(out)


def _encode_section(section: Mapping[bytes, Place], rows: Mapping[Place, int]) -> Iterator[bytes]:
    ids = sorted(section)
    bounds = [bisect_left(ids, bytes([first])) for first in range(1, 256)]
    yield _FAN_OUT.pack(*bounds, len(ids))
    yield from ids
    yield struct.pack(f"<{len(ids)}I", *(rows[section[oid]] for oid in ids))


class _Section(NamedTuple):
    fan_out: tuple[int, ...]
    ids: int  # offset of the column
    places: int
    size: int


class Shard:
    """A shard's bytes (or a mapping of its file), searched in place.

    Raises MalformedShardError if the bytes are cut short, are too long, or have another version.
    """

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self._data = data
        self.size = len(data)
        try:
            self._read_tables()
        except struct.error as error:
            raise MalformedShardError("cut short") from error

    def _read_tables(self) -> None:
        magic, version, packs, bases, records, sections = _HEADER.unpack_from(self._data)
        if magic != MAGIC:
            raise MalformedShardError("not an index shard")
        if version != VERSION:
            raise MalformedShardError(f"version {version}, written by a newer git-datasets")
        at = _HEADER.size
        self.packs: dict[bytes, int] = dict(_PACK.iter_unpack(self._cut(at, packs * _PACK.size)))
        self._pack_ids = list(self.packs)
        at += packs * _PACK.size
        self._bases = [oid for (oid,) in _ID.iter_unpack(self._cut(at, bases * ID_SIZE))]
        at += bases * ID_SIZE
        self._records_at, self._record_count = at, records
        at += records * _RECORD.size
        counts = list(_SECTION.iter_unpack(self._cut(at, sections * _SECTION.size)))
        at += sections * _SECTION.size
        self._sections: dict[int, _Section] = {}
        for kind, count in counts:
            ids = at + _FAN_OUT.size
            places = ids + count * ID_SIZE
            self._sections[kind] = _Section(_FAN_OUT.unpack_from(self._data, at), ids, places, count)
            at = places + count * _ROW.size
        if at != len(self._data):
            raise MalformedShardError("cut short" if at > len(self._data) else "bytes after the end")

    def _cut(self, start: int, size: int) -> bytes:
        if start + size > len(self._data):
            raise MalformedShardError("cut short")
        return self._data[start : start + size]

    def find_many(self, kind: int, ids: Collection[bytes]) -> dict[bytes, Place]:
        """Where those of the objects are that this shard knows."""
        rows = self._rows_of(kind, ids)
        places = {row: self._place(row) for row in set(rows.values())}  # many small objects share a record
        return {oid: places[row] for oid, row in rows.items()}

    def _rows_of(self, kind: int, ids: Collection[bytes]) -> dict[bytes, int]:
        section = self._sections.get(kind)
        if section is None:
            return {}
        if section.size > _SCAN_FACTOR * len(ids):
            found = ((oid, self._search(section, oid)) for oid in ids)
            return {oid: row for oid, row in found if row is not None}
        table = dict(self._table(section))
        return {oid: table[oid] for oid in table.keys() & set(ids)}

    def items(self) -> Iterator[Item]:
        """Everything this shard knows, by kind and id."""
        for kind, section in self._sections.items():
            for oid, row in self._table(section):
                yield Item(kind, oid, self._place(row))

    def _table(self, section: _Section) -> Iterator[tuple[bytes, int]]:
        ids = _ID.iter_unpack(self._data[section.ids : section.places])
        rows = struct.unpack_from(f"<{section.size}I", self._data, section.places)
        return zip((oid for (oid,) in ids), rows, strict=True)

    def _search(self, section: _Section, oid: bytes) -> int | None:
        data, start = self._data, section.ids
        low = section.fan_out[oid[0] - 1] if oid[0] else 0
        high = min(section.fan_out[oid[0]], section.size)
        while low < high:
            middle = (low + high) // 2
            at = start + middle * ID_SIZE
            here = data[at : at + ID_SIZE]
            if here == oid:
                return int(_ROW.unpack_from(data, section.places + middle * _ROW.size)[0])
            if here < oid:
                low = middle + 1
            else:
                high = middle
        return None

    def _place(self, row: int) -> Place:
        if row >= self._record_count:
            raise MalformedShardError("names a record it does not list")
        pack, offset, length, base = _RECORD.unpack_from(self._data, self._records_at + row * _RECORD.size)
        if pack >= len(self._pack_ids) or base > len(self._bases):
            raise MalformedShardError("names a pack or base it does not list")
        return Place(self._pack_ids[pack], offset, length, self._bases[base - 1] if base else b"")
