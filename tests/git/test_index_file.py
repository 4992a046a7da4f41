from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.git.index_file import IndexFile, UnsupportedIndexError, decode, encode, stat_data

STAT = ((1, 2), (3, 4), 5, 6, 8, 9, 10)
SHA = bytes(range(20)).hex().encode()


def signed(body: bytes) -> bytes:
    return body + hashlib.sha1(body).digest()


def made(*paths: bytes, version: int = 2, object_format: str = "sha1") -> IndexFile:
    index = IndexFile(object_format, version)
    for path in paths:
        index.put(path, 0o100644, SHA if object_format == "sha1" else b"ab" * 32, STAT)
    return index


def test_the_bytes_of_an_entry():
    stat = bytes.fromhex("00000001 00000002 00000003 00000004 00000005 00000006 000081a4 00000008 00000009 0000000a")
    entry = stat + bytes.fromhex(SHA.decode()) + b"\0\x01a" + bytes(1)
    assert encode(made(b"a")) == signed(b"DIRC" + bytes.fromhex("00000002 00000001") + entry)


def test_an_entry_keeps_its_stat_data():
    index = made(b"a")
    index.put(b"b", 0o100755, SHA)
    entries = decode(encode(index), "sha1").entries
    assert (stat_data(entries[b"a"]), entries[b"a"].mode, entries[b"a"].sha) == (STAT, 0o100644, SHA)
    assert stat_data(entries[b"b"]) == ((0, 0), (0, 0), 0, 0, 0, 0, 0)


paths = st.binary(min_size=1, max_size=60).filter(lambda path: b"\0" not in path)


@given(st.sets(paths, max_size=20), st.sampled_from([2, 3, 4]), st.sampled_from(["sha1", "sha256"]))
def test_round_trip(names, version, object_format):
    index = made(*names, version=version, object_format=object_format)
    index.extensions[b"REUC"] = b"whatever"
    found = decode(encode(index), object_format)
    assert found == index
    assert list(found.entries) == sorted(names)


def test_conflicts_stand_between_the_others_in_order():
    index = made(b"a", b"b", b"c")
    ours = index.entries.pop(b"b")
    stages = []
    for stage in (1, 2, 3):
        index.entries.pop(b"b", None)
        index.put(b"b", ours.mode, SHA, STAT)
        index.entries[b"b"].flags = stage << 12
        stages.append(index.entries.pop(b"b"))
    index.conflicts[b"b"] = stages
    data = encode(index)
    assert decode(data, "sha1") == index
    flags_and_names = [data[place + 60 : place + 63] for place in range(12, len(data) - 20, 64)]
    assert flags_and_names == [b"\0\x01a", b"\x10\x01b", b"\x20\x01b", b"\x30\x01b", b"\0\x01c"]


@pytest.mark.parametrize(("version", "written"), [(2, 3), (3, 3), (4, 4)])
def test_extended_flags_raise_the_version(version, written):
    index = made(b"a", b"b", version=version)
    index.entries[b"a"].flags = 0x4000
    index.entries[b"a"].extended_flags = 0x4000
    data = encode(index)
    assert data[7] == written
    assert decode(data, "sha1").entries == index.entries


def test_an_index_without_hash_stays_without():
    index = made(b"a")
    index.hashed = False
    data = encode(index)
    assert data.endswith(bytes(20))
    assert decode(data, "sha1") == index


def test_names_that_are_too_long():
    index = made(b"a" * 4094)
    assert decode(encode(index), "sha1") == index
    index.put(b"b" * 4095, 0o100644, SHA)
    with pytest.raises(UnsupportedIndexError, match="too long"):
        encode(index)


def test_names_too_far_apart_for_version_4():
    for removed in (126, 127):
        index = made(b"d/" + b"a" * removed, b"d/b", version=4)
        assert decode(encode(index), "sha1") == index
    for removed in (128, 129, 255, 256, 1000):
        index = made(b"d/" + b"a" * removed, b"d/b", version=4)
        with pytest.raises(UnsupportedIndexError, match="differ too much"):
            encode(index)
    index = made(b"d/" + b"a" * 1000, b"d/" + b"a" * 1000 + b"b", version=4)
    assert decode(encode(index), "sha1") == index


def extension(name: bytes, content: bytes) -> bytes:
    return name + len(content).to_bytes(4, "big") + content


def test_extensions():
    body = encode(made(b"a"))[:-20]
    data = signed(body + extension(b"TREE", b"t") + extension(b"UNTR", b"u") + extension(b"XYZ0", b""))
    assert decode(data, "sha1").extensions == {b"TREE": b"t"}
    assert encode(decode(data, "sha1")) == signed(body + extension(b"TREE", b"t"))
    for name, word in ((b"link", "split"), (b"sdir", "sparse"), (b"abcd", "newer")):
        with pytest.raises(UnsupportedIndexError, match=word):
            decode(signed(body + extension(name, b"")), "sha1")


def test_damage():
    data = encode(made(b"a", b"b"))
    for broken in (b"", data[:40], data[:-1], b"X" + data[1:], data[:30] + b"\xff" + data[31:]):
        with pytest.raises(UnsupportedIndexError, match="damaged"):
            decode(broken, "sha1")
    body = data[:-20]
    for broken in (b"", body[:60], body + b"TREE\0", body + b"TREE\0\0\0\x09", body[:8] + b"\0\0\0\x09" + body[12:]):
        with pytest.raises(UnsupportedIndexError, match="damaged"):
            decode(signed(broken), "sha1")
    with pytest.raises(UnsupportedIndexError, match="version 5"):
        decode(signed(b"DIRC\0\0\0\x05" + body[8:]), "sha1")
