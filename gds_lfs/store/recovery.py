"""Getting whole records out of packs that are not whole: a dead writer's, or one that the disk has damaged."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import Oid, oid_of
from gds_lfs.errors import CorruptObjectError, GitDatasetsError
from gds_lfs.store import pack
from gds_lfs.store.files import open_to_read, read_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gds_lfs.store.writer import StoreWriter


def copy_whole_records(
    path: Path, entries: Iterable[pack.Entry] | None, writer: StoreWriter, base_lookup: Callable[[Oid], bytes]
) -> None:
    """Give `writer` the records of a pack, of a damaged one those members that still have their hash.

    `entries` is the pack's table of contents, or None to find the records by scanning. Raises OSError, and
    StoreWriteError from the writer.
    """
    descriptor = open_to_read(path)
    try:
        if entries is None:
            entries = pack.scan(partial(read_at, descriptor), os.fstat(descriptor).st_size, past_gaps=True)
        for entry in entries:
            record = _whole_part(descriptor, entry, base_lookup)
            if record is not None:
                writer.add_record(record)
    finally:
        os.close(descriptor)


def _whole_part(descriptor: int, entry: pack.Entry, base_lookup: Callable[[Oid], bytes]) -> pack.Record | None:
    header = entry.header
    record = pack.Record(header, read_at(descriptor, entry.offset + header.size, header.stored_size))
    try:
        pack.unpack(record, base_lookup)
    except CorruptObjectError:
        return _whole_members(record, base_lookup) if header.kind == pack.CHUNKS else None
    except GitDatasetsError:  # a newer version's, or a base that is gone: not to be judged here
        return record
    return record


def _whole_members(record: pack.Record, base_lookup: Callable[[Oid], bytes]) -> pack.Record | None:
    try:
        raw = pack.raw_bytes(record, base_lookup)
    except CorruptObjectError:
        return None
    whole = [(oid, data) for oid, data in pack.members(record.header, raw) if oid_of(data) == oid]
    return pack.make_record(pack.CHUNKS, whole) if whole else None
