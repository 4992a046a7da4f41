from __future__ import annotations

import io

import pytest

from gds_lfs.errors import GitError
from gds_lfs.git.pkt_line import FLUSH, MAX_PAYLOAD, PacketReader, encode


def test_bytes():
    assert encode(b"version=2\n") == b"000eversion=2\n"
    assert encode(b"") == b"0004"
    assert encode(bytes(MAX_PAYLOAD))[:4] == b"fff0"
    with pytest.raises(ValueError, match="do not fit"):
        encode(bytes(MAX_PAYLOAD + 1))


def test_reading():
    packets = reader(encode(b"a\n") + encode(b"") + encode(b"\0" * MAX_PAYLOAD) + FLUSH)
    assert [packets.packet() for _ in range(4)] == [b"a\n", b"", b"\0" * MAX_PAYLOAD, None]
    with pytest.raises(EOFError):
        packets.packet()


def test_lists_lose_one_newline_each():
    assert reader(encode(b"a\n") + encode(b"b\n\n") + encode(b"c") + FLUSH).lines() == [b"a", b"b\n", b"c"]


@pytest.mark.parametrize("length", [1, 3, 4, 7])
def test_the_end_inside_a_packet(length):
    with pytest.raises(EOFError):
        reader(encode(b"abcd")[:length]).packet()


@pytest.mark.parametrize("header", [b"0001", b"0003", b"fff5", b"GET ", b"-001", b"+00a", b" 00a"])
def test_what_is_no_packet(header):
    with pytest.raises(GitError, match="does not speak git's filter protocol"):
        reader(header + bytes(100)).packet()


@pytest.mark.parametrize("size", [1, 3, 5, 65519, 65521, 1 << 20])
def test_reads_of_any_size_are_put_together(size):
    payloads = [b"abc", b"", b"\1" * MAX_PAYLOAD, None, b"d" * 1000, None]
    stream = io.BytesIO(b"".join(FLUSH if each is None else encode(each) for each in payloads))
    packets = PacketReader(lambda most: stream.read(min(size, most)))
    assert [packets.packet() for _ in payloads] == payloads


def reader(data: bytes) -> PacketReader:
    return PacketReader(io.BytesIO(data).read)
