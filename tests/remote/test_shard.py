from __future__ import annotations

import hashlib
import mmap
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.remote.shard import Item, MalformedShardError, Place, Shard, encode

if TYPE_CHECKING:
    from pathlib import Path

P1, P2 = b"\x01" * 32, b"\x02" * 32
A, B, C, BASE = b"\x00" + b"a" * 31, b"\x7f" * 32, b"\xff" * 32, b"\x33" * 32
ITEMS = [
    Item(2, C, Place(P1, 500, 60)),
    Item(1, B, Place(P2, 5, 100)),
    Item(1, A, Place(P2, 5, 100)),
    Item(1, C, Place(P1, 5, 200, BASE)),
]
SIZES = {P1: 1000, P2: 2000, b"\x03" * 32: 1}

GOLDEN = b"".join(
    [
        b"GDSI\x01\0\0\0" + struct.pack("<IIII", 2, 1, 3, 2),
        P1 + struct.pack("<Q", 1000) + P2 + struct.pack("<Q", 2000),
        BASE,
        struct.pack("<IQII", 0, 5, 200, 1) + struct.pack("<IQII", 0, 500, 60, 0) + struct.pack("<IQII", 1, 5, 100, 0),
        struct.pack("<IIII", 1, 3, 2, 1),
        struct.pack("<256I", *[1] * 127, *[2] * 128, 3) + A + B + C + struct.pack("<III", 2, 2, 0),
        struct.pack("<256I", *[0] * 255, 1) + C + struct.pack("<I", 1),
    ]
)


def find(shard: Shard, kind: int, oid: bytes) -> Place | None:
    return shard.find_many(kind, [oid]).get(oid)


def test_golden() -> None:
    assert encode(ITEMS, SIZES) == GOLDEN
    assert encode(reversed([*ITEMS, *ITEMS]), SIZES) == GOLDEN
    assert hashlib.sha256(GOLDEN).hexdigest() == "0ab31d192a42de032e6a32c073eb19b0ccf74b8d68b6586250431bc22d661d59"


def test_read() -> None:
    shard = Shard(GOLDEN)
    assert shard.packs == {P1: 1000, P2: 2000}
    assert sorted(shard.items()) == sorted(ITEMS)
    assert find(shard, 1, A) == Place(P2, 5, 100)
    assert find(shard, 1, C) == Place(P1, 5, 200, BASE)
    assert find(shard, 2, C) == Place(P1, 500, 60)
    assert find(shard, 2, A) is None
    assert find(shard, 3, A) is None
    assert find(shard, 1, b"\x7f" * 31 + b"\x80") is None


def test_nothing() -> None:
    data = encode([], {})
    assert len(data) == 24
    assert list(Shard(data).items()) == []
    assert Shard(data).find_many(1, [A]) == {}


def test_one_place_for_each_object() -> None:
    with pytest.raises(ValueError, match="two places"):
        encode([Item(1, A, Place(P1, 5, 1)), Item(1, A, Place(P1, 6, 1))], SIZES)


def test_over_a_mapped_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOLDEN)
    with (tmp_path / "x").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert Shard(mapped).find_many(1, [A, B, BASE]) == {A: Place(P2, 5, 100), B: Place(P2, 5, 100)}


def test_cut_short_anywhere() -> None:
    for size in range(len(GOLDEN)):
        with pytest.raises(MalformedShardError):
            Shard(GOLDEN[:size])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (GOLDEN + b"\0", "after the end"),
        (b"GDSX" + GOLDEN[4:], "not an index shard"),
        (b"GDSI\x02" + GOLDEN[5:], "version 2, written by a newer git-datasets"),
    ],
)
def test_refused(data: bytes, words: str) -> None:
    with pytest.raises(MalformedShardError, match=words):
        Shard(data)


def test_rows_that_do_not_exist() -> None:
    no_record = GOLDEN[:-4] + struct.pack("<I", 3)
    with pytest.raises(MalformedShardError, match="record"):
        find(Shard(no_record), 2, C)
    at = GOLDEN.index(struct.pack("<IQII", 1, 5, 100, 0))
    no_pack = GOLDEN[:at] + struct.pack("<IQII", 2, 5, 100, 0) + GOLDEN[at + 20 :]
    with pytest.raises(MalformedShardError, match="pack"):
        Shard(no_pack).find_many(1, [A])


ids = st.binary(min_size=32, max_size=32)
places = st.builds(
    Place,
    st.sampled_from([P1, P2]),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.sampled_from([b"", BASE, A]),
)


@given(st.dictionaries(st.tuples(st.integers(1, 3), ids), places, max_size=60), st.lists(ids, max_size=5))
def test_what_goes_in_comes_out(content: dict[tuple[int, bytes], Place], others: list[bytes]) -> None:
    items = [Item(kind, oid, place) for (kind, oid), place in content.items()]
    data = encode(items, SIZES)
    shard = Shard(data)
    assert sorted(shard.items()) == sorted(items)
    assert encode(shard.items(), shard.packs) == data
    for kind in (1, 2, 3):
        asked = [oid for each, oid in content if each == kind]
        expected = {oid: content[kind, oid] for oid in asked}
        known = {oid: content[kind, oid] for oid in others if (kind, oid) in content}
        assert shard.find_many(kind, [*asked, *others]) == expected | known
        assert {oid: find(shard, kind, oid) for oid in asked} == expected


def test_few_and_many_are_found_alike() -> None:
    every = [hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(3000)]
    shard = Shard(encode((Item(1, oid, Place(P1, n, 1)) for n, oid in enumerate(every[::2])), SIZES))
    for asked in (every, every[:10], every[5:6], []):
        expected = {oid: Place(P1, n // 2, 1) for n, oid in enumerate(every) if oid in asked and n % 2 == 0}
        assert shard.find_many(1, asked) == expected
