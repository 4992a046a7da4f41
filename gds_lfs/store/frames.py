"""Objects out of records: decoded frames, kept for a while because neighbours are wanted next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content.hashing import Oid, oid_of
from gds_lfs.errors import CorruptObjectError
from gds_lfs.store import pack

if TYPE_CHECKING:
    from collections.abc import Callable

    from gds_lfs.store.catalog import Place
    from gds_lfs.store.files import OpenFiles

_MEMORY = 16 * 1024 * 1024


class Frame(NamedTuple):
    """A record's members, decoded but not checked against their ids."""

    kind: int
    raw: memoryview
    slices: dict[Oid, slice]


class Frames:
    """Decodes records and keeps the latest ones. Safe to use from several threads."""

    def __init__(self, files: OpenFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._frames: OrderedDict[tuple[object, int], Frame] = OrderedDict()
        self._holders: dict[tuple[int, Oid], tuple[object, int]] = {}
        self._size = 0

    def cached(self, kind: int, oid: Oid) -> bytes | None:
        """The object, if it is in a frame decoded lately. Raises CorruptObjectError."""
        with self._lock:
            key = self._holders.get((kind, oid))
            if key is None:
                return None
            self._frames.move_to_end(key)
            frame = self._frames[key]
        return _member(frame, oid)

    def load(self, kind: int, oid: Oid, place: Place, base_lookup: Callable[[Oid], bytes]) -> bytes:
        """The object, out of the record at `place`. Raises CorruptObjectError, OSError."""
        record = self.record(place)
        frame = _decode(record, base_lookup)
        if frame.kind != kind or oid not in frame.slices:
            raise CorruptObjectError(f"object {oid.hex()} is not where the catalog says", oid)
        self._keep((place.path, place.offset), frame)
        return _member(frame, oid)

    def record(self, place: Place) -> pack.Record:
        """The record at `place`, payload as stored. Raises CorruptObjectError, OSError."""
        return pack.decode_record(self._files.read(place.path, place.offset, place.length))

    def clear(self) -> None:
        """Forget everything, so that the next reading is from the disk."""
        with self._lock:
            self._frames.clear()
            self._holders.clear()
            self._size = 0

    def _keep(self, key: tuple[object, int], frame: Frame) -> None:
        with self._lock:
            if key in self._frames:
                return
            self._frames[key] = frame
            self._size += len(frame.raw)
            for oid in frame.slices:
                self._holders[frame.kind, oid] = key
            while self._size > _MEMORY and len(self._frames) > 1:
                old_key, old = self._frames.popitem(last=False)
                self._size -= len(old.raw)
                for oid in old.slices:
                    if self._holders.get((old.kind, oid)) == old_key:
                        del self._holders[old.kind, oid]


def _decode(record: pack.Record, base_lookup: Callable[[Oid], bytes]) -> Frame:
    raw = pack.raw_bytes(record, base_lookup)
    slices = {}
    offset = 0
    for oid, size in record.header.members:
        slices[oid] = slice(offset, offset + size)
        offset += size
    return Frame(record.header.kind, raw, slices)


def _member(frame: Frame, oid: Oid) -> bytes:
    data = bytes(frame.raw[frame.slices[oid]])
    if frame.kind == pack.CHUNKS and oid_of(data) != oid:
        raise CorruptObjectError(f"chunk {oid.hex()} is damaged", oid)
    return data
