"""The pack codec: bytes in, bytes out; opens no file.

A pack is ``GDSP``, a version byte (1), records, a footer, a trailer. Numbers are little-endian.

Record::

    4   magic "GDSR"
    1   kind            1 CHUNKS            each member is a chunk (or a small file: the same thing)
                        2 MANIFESTS         each member is a file's id, its bytes the file's manifest
                        3 MANIFEST_OBJECTS  each member is a file's id, its bytes the ids (32 bytes each) of chunks
                                            which, one after the other, are the file's manifest
    1   encoding        0 RAW        the payload is the members' bytes, one after the other
                        1 ZSTD       those bytes as one zstd frame that states its content size
                        2 ZSTD_DICT  the same, with the chunk `base` as raw-content dictionary
                        3 PATCH      see below
    4   number of members
    4   raw size        of all members' bytes together: at most 256 MiB
    4   stored size     of the payload
    32  base            id of the chunk that the encoding needs; zeros for RAW and ZSTD
    4   payload CRC     CRC-32 of the payload; 0 for CHUNKS, whose ids check it
    4   header CRC      CRC-32 of the 54 bytes above and the members
    36  for each member: its id (32), its size (4, above 0)
    …   payload

PATCH payload (one member; its base is a chunk in pages of 4 KiB)::

    2   number of operations
    5   for each: 1 operation, 2 number of pages, 2 first page in the base
        0 same:  pages at this very place in the base (first page: 0)
        1 from:  pages that stand at `first page` in the base
        2 fresh: the next pages of the zstd frame (first page: 0)
    …   one zstd frame holding all fresh pages, with the base as raw-content dictionary; absent where none is fresh

The pages so put together, cut to the member's size, are its bytes. This version neither writes nor reads patches.

Footer: ``GDSF``, number of records (u32), then each record's header and members again; records follow each other
without gaps from byte 5 on, so their lengths give their places. Trailer: size of the footer (u32), its CRC-32,
``GDSE``. One read of a pack's end is thus its whole table of contents, and a pack cut short is read by `scan`. A pack's
id is the SHA-256 of the whole file.
"""

from __future__ import annotations

import hashlib
import struct
import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from gds_lfs.content.hashing import OID_SIZE, Oid, oid_of
from gds_lfs.errors import CorruptObjectError, GitDatasetsError
from gds_lfs.store.compression import compress, decompress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


CHUNKS, MANIFESTS, MANIFEST_OBJECTS = 1, 2, 3
RAW, ZSTD, ZSTD_DICT, PATCH = 0, 1, 2, 3

PACK_HEADER = b"GDSP\x01"
TRAILER_SIZE = 12
MAX_RAW = 256 * 1024 * 1024
FRAME_SIZE = 1024 * 1024
"""Raw bytes of small objects that are worth compressing together, in one record of at most `FRAME_MEMBERS`."""
FRAME_MEMBERS = 2048
NO_BASE = bytes(OID_SIZE)
_MAGIC = b"GDSR"
_FOOTER_MAGIC = b"GDSF"

_SMALL = 64 * 1024
_UNHASHED = 32
"""Pieces that `PackStream` holds until it hashes them: two of a large record."""

_FIXED = struct.Struct("<4sBBIII32sI")
_CRC = struct.Struct("<I")
_MEMBER = struct.Struct("<32sI")
_FOOTER = struct.Struct("<4sI")
_TRAILER = struct.Struct("<II4s")
_HEADER_SIZE = _FIXED.size + _CRC.size
_NEWER = "was written by a newer git-datasets: update git-datasets to read it"


class Header(NamedTuple):
    """What a record says before its payload."""

    kind: int
    encoding: int
    members: tuple[tuple[Oid, int], ...]
    raw_size: int
    stored_size: int
    base: Oid
    payload_crc: int

    @property
    def size(self) -> int:
        """Bytes of the header with its members."""
        return _HEADER_SIZE + len(self.members) * _MEMBER.size

    @property
    def record_size(self) -> int:
        """Bytes of the whole record."""
        return self.size + self.stored_size

    def encode(self) -> bytes:
        """The header and the members as they stand before the payload and in the footer."""
        fixed = _FIXED.pack(
            _MAGIC,
            self.kind,
            self.encoding,
            len(self.members),
            self.raw_size,
            self.stored_size,
            self.base,
            self.payload_crc,
        )
        pack = _MEMBER.pack
        members = b"".join([pack(oid, size) for oid, size in self.members])
        return fixed + _CRC.pack(crc32(members, crc32(fixed))) + members


class Record(NamedTuple):
    """A header and the payload as stored, which may be a view of what was read."""

    header: Header
    payload: bytes | memoryview


class Entry(NamedTuple):
    """Where a record begins in a pack, and its header."""

    offset: int
    header: Header


def make_record(kind: int, items: Sequence[tuple[Oid, bytes | memoryview]]) -> Record:
    """A record of `items` (id and bytes), compressed where that saves at least 3 %."""
    raw = items[0][1] if len(items) == 1 else b"".join([data for _, data in items])
    compressed = compress(raw)
    encoding, payload = (RAW, raw) if compressed is None else (ZSTD, compressed)
    crc = 0 if kind == CHUNKS else crc32(payload)
    members = tuple([(oid, len(data)) for oid, data in items])
    return Record(Header(kind, encoding, members, len(raw), len(payload), NO_BASE, crc), payload)


def encode_record(record: Record) -> bytes:
    """The record's bytes in a pack."""
    return b"".join((record.header.encode(), record.payload))


def header_size(data: bytes | memoryview) -> int:
    """How long the header that `data` begins with is, members included. Raises CorruptObjectError for no header."""
    if len(data) < _HEADER_SIZE or bytes(data[:4]) != _MAGIC:
        raise CorruptObjectError("not the beginning of a pack record")
    count: int = _FIXED.unpack_from(data)[3]
    return _HEADER_SIZE + count * _MEMBER.size


def decode_header(data: bytes | memoryview) -> Header:
    """Read the header that `data` begins with; CorruptObjectError where it is damaged or cut short."""
    size = header_size(data)
    if len(data) < size:
        raise CorruptObjectError("a pack record's header is cut short")
    _, kind, encoding, _, raw_size, stored_size, base, payload_crc = _FIXED.unpack_from(data)
    members = memoryview(data)[_HEADER_SIZE:size]
    if crc32(members, crc32(memoryview(data)[: _FIXED.size])) != _CRC.unpack_from(data, _FIXED.size)[0]:
        raise CorruptObjectError("a pack record's header is damaged")
    header = Header(kind, encoding, tuple(_MEMBER.iter_unpack(members)), raw_size, stored_size, base, payload_crc)
    if not header.members or sum(n for _, n in header.members) != raw_size or not all(n for _, n in header.members):
        raise CorruptObjectError("a pack record's members do not add up to its size")
    return header


def decode_record(data: bytes | memoryview) -> Record:
    """Read exactly one record, without a copy of its payload; raises CorruptObjectError.

    `raw_bytes` and `unpack` check the payload, this does not.
    """
    header = decode_header(data)
    if len(data) != header.record_size:
        raise CorruptObjectError("a pack record is cut short")
    return Record(header, memoryview(data)[header.size :])


def raw_bytes(record: Record, base_lookup: Callable[[Oid], bytes]) -> memoryview:
    """The members' bytes, one after the other; a chunk's id is not checked yet, a manifest's CRC is.

    `base_lookup` gives the bytes of a chunk by id. Raises CorruptObjectError, GitDatasetsError for what only a newer
    version knows, and what `base_lookup` raises.
    """
    header, payload = record.header, record.payload
    first = header.members[0][0]
    if header.kind not in (CHUNKS, MANIFESTS, MANIFEST_OBJECTS) or header.encoding not in (RAW, ZSTD, ZSTD_DICT):
        raise GitDatasetsError(f"object {first.hex()} {_NEWER}")
    if header.raw_size > MAX_RAW or len(payload) != header.stored_size:
        raise CorruptObjectError(f"the record of object {first.hex()} has an impossible size", first)
    if header.kind != CHUNKS and crc32(payload) != header.payload_crc:
        raise CorruptObjectError(f"the manifest of {first.hex()} is damaged", first)
    if header.encoding != RAW:
        dictionary = base_lookup(header.base) if header.encoding == ZSTD_DICT else None
        try:
            payload = decompress(payload, header.raw_size, dictionary)
        except ValueError as error:
            raise CorruptObjectError(f"the record of object {first.hex()} is damaged", first) from error
    if len(payload) != header.raw_size:
        raise CorruptObjectError(f"the record of object {first.hex()} is damaged", first)
    return memoryview(payload)


def unpack(record: Record, base_lookup: Callable[[Oid], bytes]) -> list[tuple[Oid, memoryview]]:
    """The members, each with its bytes, all checked. Raises what `raw_bytes` does."""
    items = list(members(record.header, raw_bytes(record, base_lookup)))
    if record.header.kind == CHUNKS:
        for oid, data in items:
            if oid_of(data) != oid:
                raise CorruptObjectError(f"chunk {oid.hex()} is damaged", oid)
    return items


def members(header: Header, raw: memoryview) -> Iterator[tuple[Oid, memoryview]]:
    """The members, each with its bytes, cut out of `raw_bytes`."""
    offset = 0
    for oid, size in header.members:
        yield oid, raw[offset : offset + size]
        offset += size


def check_part(data: memoryview, offset: int, base_lookup: Callable[[Oid], bytes]) -> tuple[list[Entry], list[Entry]]:
    """The records of a part of a pack, all checked as `unpack` does: `data` begins with the pack's header (`offset` 0)
    or a record, and ends where a record or the pack does. Where the pack does, also its table of contents.

    Raises CorruptObjectError for anything else, and what `unpack` raises.
    """
    entries: list[Entry] = []
    position = len(PACK_HEADER) if offset == 0 else 0
    if data[:position] != PACK_HEADER[:position]:
        raise CorruptObjectError("not the beginning of a pack")
    while position < len(data):
        if data[position : position + len(_FOOTER_MAGIC)] == _FOOTER_MAGIC:
            return entries, decode_footer(data[position:])
        header = decode_header(data[position:])
        end = position + header.record_size
        unpack(Record(header, data[position + header.size : end]), base_lookup)
        entries.append(Entry(offset + position, header))
        position = end
    return entries, []


def encode_footer(headers: Iterable[bytes]) -> bytes:
    """The footer and the trailer of a pack whose records have these encoded headers."""
    parts = list(headers)
    footer = b"".join([_FOOTER.pack(_FOOTER_MAGIC, len(parts)), *parts])
    return footer + _TRAILER.pack(len(footer), crc32(footer), b"GDSE")


def footer_size(tail: bytes | memoryview) -> int:
    """From a pack's last bytes (12 at least), the size of footer and trailer together. Raises CorruptObjectError."""
    if len(tail) < TRAILER_SIZE or tail[-4:] != b"GDSE":
        raise CorruptObjectError("not a sealed pack: it has no trailer")
    size: int = _TRAILER.unpack(tail[-TRAILER_SIZE:])[0]
    return size + TRAILER_SIZE


def decode_footer(data: bytes | memoryview) -> list[Entry]:
    """Read a pack's last `footer_size` bytes; raises CorruptObjectError where they are damaged."""
    if len(data) != footer_size(data) or len(data) < _FOOTER.size + TRAILER_SIZE:
        raise CorruptObjectError("a pack's footer is cut short")
    _, crc, _ = _TRAILER.unpack(data[-TRAILER_SIZE:])
    footer = memoryview(data)[:-TRAILER_SIZE]
    magic, count = _FOOTER.unpack_from(footer)
    if magic != _FOOTER_MAGIC or crc32(footer) != crc:
        raise CorruptObjectError("a pack's footer is damaged")
    entries = []
    position, offset = _FOOTER.size, len(PACK_HEADER)
    for _ in range(count):
        header = decode_header(footer[position:])
        entries.append(Entry(offset, header))
        position += header.size
        offset += header.record_size
    if position != len(footer):
        raise CorruptObjectError("a pack's footer holds more than its records")
    return entries


class PackStream:
    """A pack as it is written, by a `write` that takes all the bytes or raises; nothing is counted then.

    `entries` are the records so far, `size` is the number of bytes.
    """

    def __init__(self, write: Callable[[bytes | memoryview], None]) -> None:
        self.entries: list[Entry] = []
        self.size = 0
        self._write = write
        self._headers: list[bytes] = []
        self._digest = hashlib.sha256()
        self._unhashed: deque[bytes | memoryview] = deque()
        self._hashing = threading.Lock()
        self._put(PACK_HEADER)

    def add(self, record: Record) -> None:
        """Write one record; raises what `write` does."""
        offset = self.size
        if len(record.payload) < _SMALL:
            data = encode_record(record)
            header = data[: record.header.size]
            self._put(data)
        else:  # a copy costs more than a call
            header = record.header.encode()
            self._put(header, record.payload)
        self.entries.append(Entry(offset, record.header))
        self._headers.append(header)

    def digest(self) -> None:
        """Hash what was written by now. `add` leaves that to a moment, or a thread, that has time for it."""
        with self._hashing:
            while self._unhashed:
                self._digest.update(self._unhashed.popleft())

    def finish(self) -> Oid:
        """Write footer and trailer; the pack's id. Raises what `write` does."""
        self._put(encode_footer(self._headers))
        self.digest()
        return self._digest.digest()

    def _put(self, *pieces: bytes | memoryview) -> None:
        for piece in pieces:
            self._write(piece)
        self._unhashed.extend(pieces)
        self.size += sum(map(len, pieces))
        if len(self._unhashed) > _UNHASHED:
            self.digest()


def scan(read_at: Callable[[int, int], bytes], end: int, start: int = 0, *, past_gaps: bool = False) -> Iterator[Entry]:
    """The complete records between `start` (0: the pack's beginning) and `end`, up to the first that is not whole;
    with `past_gaps` also those behind whatever is none.

    `read_at(offset, size)` gives at most `size` bytes. Payloads are not read, let alone checked.
    """
    if start == 0:
        if read_at(0, len(PACK_HEADER)) != PACK_HEADER and not past_gaps:
            return
        start = len(PACK_HEADER)
    while start < end:
        header = _whole_at(read_at, start, end)
        if header is not None:
            yield Entry(start, header)
            start += header.record_size
        elif past_gaps:
            start = _next_magic(read_at, start + 1, end)
        else:
            return


def _whole_at(read_at: Callable[[int, int], bytes], start: int, end: int) -> Header | None:
    try:
        data = read_at(start, 4096)
        size = header_size(data)
        if size > end - start:
            return None
        header = decode_header(data if size <= len(data) else read_at(start, size))
    except CorruptObjectError:
        return None
    return header if start + header.record_size <= end else None


def _next_magic(read_at: Callable[[int, int], bytes], start: int, end: int) -> int:
    """Where the next record may begin; `end` where none does."""
    while start < end:
        window = read_at(start, FRAME_SIZE)
        found = window.find(_MAGIC)
        if found >= 0:
            return start + found
        start += max(len(window) - len(_MAGIC) + 1, 1)
    return end
