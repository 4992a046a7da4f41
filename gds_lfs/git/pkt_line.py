"""The pkt-line format of gitprotocol-common(5).

A packet is four hex digits, the length of the whole packet with these digits, then the payload of at most
65,516 bytes. "0000" is the flush packet, which ends a list or a content. Lengths 1 to 3 are special packets
that the filter protocol does not use, and 4 is an empty payload.

dulwich has this format too, but importing it makes a filter's start 9 ms longer (76 instead of 67, measured
with Python 3.11), and the format is this page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Callable

FLUSH = b"0000"
MAX_PAYLOAD = 65516

_READ_SIZE = 1 << 16
"""What a pipe holds."""


def encode(payload: bytes) -> bytes:
    """One packet. Raises ValueError for a payload that does not fit in it."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"{len(payload)} bytes do not fit in a packet")
    return b"%04x" % (len(payload) + 4) + payload


class PacketReader:
    """Packets out of a stream. `read(n)` waits, gives what there is, at most n bytes, and b"" at the end only.

    git writes a packet at a time: taking what is there in one call, and cutting it here, spares most of the calls.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._buffer = b""
        self._at = 0

    def packet(self) -> bytes | None:
        """The next payload, None for a flush packet.

        Raises EOFError when the stream ends, also inside a packet, and GitError for what is no packet.
        """
        start = self._at + 4
        header = self._buffer[self._at : start]
        if len(header) < 4:
            self._fill(4)
            start = 4
            header = self._buffer[:4]
        if header == FLUSH:
            self._at = start
            return None
        try:
            length = int(header, 16) if header.isalnum() else -1
        except ValueError:
            length = -1
        if not 4 <= length <= MAX_PAYLOAD + 4:
            raise GitError(f"standard input does not speak git's filter protocol: a packet starts with {header!r}")
        end = start + length - 4
        if end > len(self._buffer):
            self._fill(length)
            start, end = 4, length
        self._at = end
        return self._buffer[start:end]

    def lines(self) -> list[bytes]:
        """Text packets up to a flush packet, each without its one trailing newline. Raises as `packet`."""
        lines = []
        while (line := self.packet()) is not None:
            lines.append(line.removesuffix(b"\n"))
        return lines

    def _fill(self, size: int) -> None:
        """Have the buffer begin with what comes next, `size` bytes of it at least."""
        pieces = [self._buffer[self._at :]]
        held = len(pieces[0])
        while held < size:
            piece = self._read(_READ_SIZE)
            if not piece:
                raise EOFError
            pieces.append(piece)
            held += len(piece)
        self._buffer = b"".join(pieces)
        self._at = 0
