from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.content.manifest import MalformedManifest, Manifest, decode

FILE, FIRST, SECOND = bytes([9]) * 32, bytes([1]) * 32, bytes([2]) * 32
MANIFEST = Manifest(FILE, 5, ((FIRST, 2), (SECOND, 3)))
GOLDEN = (
    b"GDSM\x01" + (5).to_bytes(8, "little") + (2).to_bytes(4, "little") + FIRST + b"\x02\0\0\0" + SECOND + b"\x03\0\0\0"
)


def test_the_bytes_of_a_manifest():
    assert MANIFEST.encode() == GOLDEN
    assert decode(FILE, GOLDEN) == decode(FILE, memoryview(GOLDEN)) == MANIFEST


@given(st.lists(st.tuples(st.binary(min_size=32, max_size=32), st.integers(1, 2**32 - 1)), max_size=40))
def test_what_is_encoded_decodes(chunks):
    manifest = Manifest(FILE, sum(size for _, size in chunks), tuple(chunks))
    assert decode(FILE, manifest.encode()) == manifest


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOLDEN[:10],
        GOLDEN[:-1],
        GOLDEN + b"\0",
        b"GDSX" + GOLDEN[4:],
        GOLDEN[:4] + b"\x02" + GOLDEN[5:],
        GOLDEN[:5] + b"\x06" + GOLDEN[6:],
        GOLDEN[:13] + b"\x01" + GOLDEN[14:],
        GOLDEN[:13] + b"\xff\xff\xff\xff" + GOLDEN[17:],
        b"GDSM\x01" + (2).to_bytes(8, "little") + (2).to_bytes(4, "little") + FIRST + b"\x02\0\0\0" + SECOND + bytes(4),
    ],
)
def test_anything_else_is_refused(data):
    with pytest.raises(MalformedManifest):
        decode(FILE, data)


@pytest.mark.parametrize("chunks", [((FIRST, 4),), ((FIRST, 5), (SECOND, 0))])
def test_sizes_that_do_not_add_up_are_not_encoded(chunks):
    with pytest.raises(ValueError, match="add up"):
        Manifest(FILE, 5, chunks).encode()
