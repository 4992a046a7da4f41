from __future__ import annotations

import random

import pytest
import zstandard

from gds_lfs.store.compression import compress, decompress

TEXT = b"one line after another\n" * 1000
NOISE = random.Random(1).randbytes(300_000)


def test_what_shrinks_comes_back() -> None:
    data = compress(memoryview(TEXT))
    assert data is not None
    assert len(data) < len(TEXT) / 50
    assert decompress(data, len(TEXT)) == TEXT


@pytest.mark.parametrize("size", [1, 3000, 10_000, 300_000])
def test_what_does_not_shrink_is_left_alone(size: int) -> None:
    assert compress(NOISE[:size]) is None


def test_a_large_content_that_shrinks_in_part_is_worth_it() -> None:
    assert compress(NOISE + TEXT * 20) is not None


def test_a_dictionary_is_needed_to_read_what_was_made_with_it() -> None:
    base = zstandard.ZstdCompressionDict(NOISE, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    data = zstandard.ZstdCompressor(dict_data=base).compress(NOISE[100:50_000])
    assert decompress(data, 49_900, NOISE) == NOISE[100:50_000]
    with pytest.raises(ValueError, match=r"\w"):
        decompress(data, 49_900)


@pytest.mark.parametrize("damage", ["cut", "flip", "size", "nothing"])
def test_damage_is_told(damage: str) -> None:
    data = bytearray(compress(TEXT) or b"")
    size = len(TEXT)
    if damage == "cut":
        del data[-5:]
    elif damage == "flip":
        data[0] ^= 1
    elif damage == "size":
        size += 1
    else:
        data.clear()
    with pytest.raises(ValueError, match=r"\w"):
        decompress(bytes(data), size)
