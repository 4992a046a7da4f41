"""The pkt-line format of gitprotocol-common(5).

A packet is four hex digits, the length of the whole packet with these digits, then the payload of at most
65,516 bytes. "0000" is the flush packet, which ends a list or a content. Lengths 1 to 3 are special packets
that the filter protocol does not use, and 4 is an empty payload.

dulwich has this format too, but importing it makes a filter's start 9 ms longer (76 instead of 67, measured
with Python 3.11), and the format is this page.
"""

from __future__ import annotations

from typing import BinaryIO

from gds_lfs.errors import GitError

FLUSH = b"0000"
MAX_PAYLOAD = 65516


def encode(payload: bytes) -> bytes:
    """One packet. Raises ValueError for a payload that does not fit in it."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"{len(payload)} bytes do not fit in a packet")
    return b"%04x" % (len(payload) + 4) + payload


def read_packet(stream: BinaryIO) -> bytes | None:
    """The next payload, None for a flush packet.

    Raises EOFError when the stream ends, also inside a packet, and GitError for what is no packet.
    """
    header = stream.read(4)
    if len(header) < 4:
        header += _read_exactly(stream, 4 - len(header))
    if header == FLUSH:
        return None
    try:
        length = int(header, 16) if header.isalnum() else -1
    except ValueError:
        length = -1
    if not 4 <= length <= MAX_PAYLOAD + 4:
        raise GitError(f"standard input does not speak git's filter protocol: a packet starts with {header!r}")
    payload = stream.read(length - 4)
    missing = length - 4 - len(payload)
    return payload + _read_exactly(stream, missing) if missing else payload


def read_list(stream: BinaryIO) -> list[bytes]:
    """Text packets up to a flush packet, each without its one trailing newline. Raises as `read_packet`."""
    lines = []
    while (line := read_packet(stream)) is not None:
        lines.append(line.removesuffix(b"\n"))
    return lines


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data
