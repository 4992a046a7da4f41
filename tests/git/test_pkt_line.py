from __future__ import annotations

import io

import pytest

from gds_lfs.errors import GitError
from gds_lfs.git.pkt_line import FLUSH, MAX_PAYLOAD, encode, read_list, read_packet


def test_bytes():
    assert encode(b"version=2\n") == b"000eversion=2\n"
    assert encode(b"") == b"0004"
    assert encode(bytes(MAX_PAYLOAD))[:4] == b"fff0"
    with pytest.raises(ValueError, match="do not fit"):
        encode(bytes(MAX_PAYLOAD + 1))


def test_reading():
    stream = io.BytesIO(encode(b"a\n") + encode(b"") + encode(b"\0" * MAX_PAYLOAD) + FLUSH)
    assert [read_packet(stream) for _ in range(4)] == [b"a\n", b"", b"\0" * MAX_PAYLOAD, None]
    with pytest.raises(EOFError):
        read_packet(stream)


def test_lists_lose_one_newline_each():
    stream = io.BytesIO(encode(b"a\n") + encode(b"b\n\n") + encode(b"c") + FLUSH)
    assert read_list(stream) == [b"a", b"b\n", b"c"]


@pytest.mark.parametrize("length", [1, 3, 4, 7])
def test_the_end_inside_a_packet(length):
    with pytest.raises(EOFError):
        read_packet(io.BytesIO(encode(b"abcd")[:length]))


@pytest.mark.parametrize("header", [b"0001", b"0003", b"fff5", b"GET ", b"-001", b"+00a", b" 00a"])
def test_what_is_no_packet(header):
    with pytest.raises(GitError, match="does not speak git's filter protocol"):
        read_packet(io.BytesIO(header + bytes(100)))


def test_short_reads_are_put_together():
    class Trickle(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 1))

    assert read_packet(Trickle(encode(b"abc"))) == b"abc"
