from __future__ import annotations

import random
from zlib import crc32

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.content.hashing import oid_of
from gds_lfs.content.manifest import Manifest
from gds_lfs.errors import CorruptObjectError, GitDatasetsError
from gds_lfs.store import pack

HELLO, WORLD = oid_of(b"hello"), oid_of(b"world!")


def no_base(oid: bytes) -> bytes:
    raise AssertionError(oid.hex())


def chunk_record(*contents: bytes) -> pack.Record:
    return pack.make_record(pack.CHUNKS, [(oid_of(data), data) for data in contents])


def whole_pack(*records: pack.Record) -> bytes:
    body = pack.PACK_HEADER + b"".join(map(pack.encode_record, records))
    return body + pack.encode_footer([record.header.encode() for record in records])


def scanned(data: bytes, start: int = 0) -> list[pack.Entry]:
    return list(pack.scan(lambda offset, size: data[offset : offset + size], len(data), start))


def test_the_bytes_of_a_record():
    fixed = (
        b"GDSR\x01\x00"  # a chunk record, stored raw
        b"\x02\0\0\0"  # two members
        b"\x0b\0\0\0"  # 11 bytes raw
        b"\x0b\0\0\0"  # and stored
        + bytes(32)  # no base
        + bytes(4)  # chunks need no CRC
    )
    members = HELLO + b"\x05\0\0\0" + WORLD + b"\x06\0\0\0"
    golden = fixed + crc32(fixed + members).to_bytes(4, "little") + members + b"helloworld!"
    assert pack.encode_record(chunk_record(b"hello", b"world!")) == golden
    assert pack.decode_record(golden) == chunk_record(b"hello", b"world!")
    assert len(fixed) == 54


def test_the_bytes_of_a_pack():
    record = chunk_record(b"hello")
    header = record.header.encode()
    footer = b"GDSF\x01\0\0\0" + header
    golden = (
        b"GDSP\x01"
        + header
        + b"hello"
        + footer
        + len(footer).to_bytes(4, "little")
        + crc32(footer).to_bytes(4, "little")
        + b"GDSE"
    )
    assert whole_pack(record) == golden


@given(st.lists(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=5), max_size=5))
def test_footer_and_scan_agree(groups):
    records = [chunk_record(*group) for group in groups]
    data = whole_pack(*records)
    entries = pack.decode_footer(data[-pack.footer_size(data[-pack.TRAILER_SIZE :]) :])
    assert entries == scanned(data)
    read = [pack.decode_record(data[entry.offset : entry.offset + entry.header.record_size]) for entry in entries]
    assert read == records
    for record, group in zip(read, groups, strict=True):
        assert [content for _, content in pack.unpack(record, no_base)] == group


@given(st.data())
def test_a_pack_cut_short_gives_its_complete_records(data):
    records = [chunk_record(bytes([i]) * 50, bytes([i]) * (i + 1)) for i in range(4)]
    whole = pack.PACK_HEADER + b"".join(map(pack.encode_record, records))
    cut = data.draw(st.integers(0, len(whole)))
    ends = [len(pack.PACK_HEADER)]
    for record in records:
        ends.append(ends[-1] + record.header.record_size)
    assert len(scanned(whole[:cut])) == sum(end <= cut for end in ends[1:])
    assert len(scanned(whole[:cut] + bytes(100))) >= sum(end <= cut for end in ends[1:])


def test_scanning_goes_on_where_it_stopped():
    data = whole_pack(chunk_record(b"a"), chunk_record(b"b"))
    first, second = scanned(data)
    assert scanned(data, first.offset + first.header.record_size) == [second]
    assert scanned(b"GDSP\x02" + data[5:]) == []


def test_a_header_of_many_members_is_scanned():
    data = whole_pack(chunk_record(*[str(i).encode() for i in range(1000)]), chunk_record(b"last"))
    assert [len(entry.header.members) for entry in scanned(data)] == [1000, 1]


def test_text_is_compressed_and_noise_is_not():
    noise = random.Random(1).randbytes(1_000_000)
    text = b"one line like another\n" * 40_000
    assert chunk_record(noise).header.encoding == pack.RAW
    assert chunk_record(noise[:5000]).header.encoding == pack.RAW
    assert chunk_record(text).header.encoding == pack.ZSTD
    assert chunk_record(noise[:900_000] + bytes(100_000)).header.encoding == pack.ZSTD
    assert chunk_record(text).header.stored_size == len(chunk_record(text).payload) < 5000
    assert pack.unpack(chunk_record(text), no_base) == [(oid_of(text), text)]


def test_every_flipped_bit_is_noticed():
    for record in (
        chunk_record(b"hello", b"world!"),
        pack.make_record(pack.MANIFESTS, [(HELLO, Manifest(HELLO, 5, ((WORLD, 5),)).encode())]),
        chunk_record(b"compressible" * 20),
    ):
        data = pack.encode_record(record)
        for at in range(len(data)):
            broken = bytearray(data)
            broken[at] ^= 0x10
            try:
                content = pack.unpack(pack.decode_record(bytes(broken)), no_base)
            except CorruptObjectError:
                continue
            assert content == pack.unpack(record, no_base)  # zstd has bits that mean nothing


def test_every_flipped_bit_of_a_footer_is_noticed():
    data = whole_pack(chunk_record(b"hello"), chunk_record(b"world!"))
    footer = data[-pack.footer_size(data) :]
    for at in range(len(footer)):
        broken = bytearray(footer)
        broken[at] ^= 1
        with pytest.raises(CorruptObjectError):
            pack.decode_footer(bytes(broken))
    with pytest.raises(CorruptObjectError):
        pack.decode_footer(footer[1:])
    with pytest.raises(CorruptObjectError):
        pack.footer_size(b"")


def test_a_chunk_on_a_base():
    base = random.Random(2).randbytes(50_000)
    data = base[:20_000] + b"a few new bytes" + base[20_000:]
    dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    payload = zstandard.ZstdCompressor(dict_data=dictionary, level=3).compress(data)
    oid = oid_of(data)
    header = pack.Header(pack.CHUNKS, pack.ZSTD_DICT, ((oid, len(data)),), len(data), len(payload), oid_of(base), 0)
    record = pack.decode_record(pack.encode_record(pack.Record(header, payload)))
    assert len(payload) < 1000
    assert pack.unpack(record, {oid_of(base): base}.__getitem__) == [(oid, data)]
    with pytest.raises(CorruptObjectError):
        pack.unpack(record, lambda _: base[::-1])


@pytest.mark.parametrize(("kind", "encoding"), [(pack.CHUNKS, pack.PATCH), (pack.CHUNKS, 9), (77, pack.RAW)])
def test_what_a_newer_version_wrote_is_said_to_be(kind, encoding):
    header = pack.Header(kind, encoding, ((HELLO, 5),), 5, 5, pack.NO_BASE, 0)
    data = whole_pack(pack.Record(header, b"hello"), chunk_record(b"next"))
    newer, after = scanned(data)
    with pytest.raises(GitDatasetsError, match="newer git-datasets"):
        pack.unpack(pack.Record(newer.header, b"hello"), no_base)
    assert after.header == chunk_record(b"next").header


def test_a_payload_that_would_fill_the_memory_is_refused():
    bomb = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    header = pack.Header(pack.CHUNKS, pack.ZSTD, ((HELLO, 5),), 5, len(bomb), pack.NO_BASE, 0)
    with pytest.raises(CorruptObjectError):
        pack.unpack(pack.Record(header, bomb), no_base)
    huge = pack.Header(pack.CHUNKS, pack.ZSTD, ((HELLO, 2**31),), 2**31, len(bomb), pack.NO_BASE, 0)
    with pytest.raises(CorruptObjectError, match="impossible size"):
        pack.unpack(pack.Record(huge, bomb), no_base)
    without_size = zstandard.ZstdCompressor(write_content_size=False).compress(b"hello")
    header = pack.Header(pack.CHUNKS, pack.ZSTD, ((HELLO, 5),), 5, len(without_size), pack.NO_BASE, 0)
    with pytest.raises(CorruptObjectError):
        pack.unpack(pack.Record(header, without_size), no_base)


def test_sizes_that_do_not_add_up_are_refused():
    for members, raw in [(((HELLO, 4),), 5), ((), 0), (((HELLO, 5), (WORLD, 0)), 5)]:
        header = pack.Header(pack.CHUNKS, pack.RAW, members, raw, 5, pack.NO_BASE, 0)
        with pytest.raises(CorruptObjectError):
            pack.decode_header(header.encode())


def test_records_behind_a_gap_are_found():
    records = [chunk_record(bytes([n]) * 5000) for n in range(4)]
    data = bytearray(whole_pack(*records))
    entries = scanned(bytes(data))
    second, last = entries[1].offset, entries[3].offset
    data[second : second + 100] = bytes(100)
    found = list(pack.scan(lambda at, size: bytes(data[at : at + size]), last + 10, past_gaps=True))
    assert found == [entries[0], entries[2]]
    assert scanned(bytes(data)) == [entries[0]]
    data[:5] = bytes(5)
    assert list(pack.scan(lambda at, size: bytes(data[at : at + size]), last, past_gaps=True)) == found


@given(st.integers(0, 3), st.integers(1, 4))
def test_a_part_is_checked(first, count):
    records = [chunk_record(bytes([n]) * 50) for n in range(4)]
    data = whole_pack(*records)
    entries = scanned(data)
    chosen = entries[first : first + count]
    start = chosen[0].offset if first else 0
    last = first + len(chosen) == 4
    end = len(data) if last else chosen[-1].offset + chosen[-1].header.record_size
    part = data[start:end]
    assert pack.check_part(memoryview(part), start, no_base) == (chosen, entries if last else [])
    for broken in (part[:-1], bytes([part[0] ^ 1]) + part[1:], part[:-60] + bytes([part[-60] ^ 1]) + part[-59:]):
        with pytest.raises(CorruptObjectError):
            pack.check_part(memoryview(broken), start, no_base)
