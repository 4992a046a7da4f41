"""The chunk rule: where a content is cut.

- At most 128 KiB: one chunk, whose id is the file's own.
- Larger, with the SQLite header: blocks of 64 KiB (the last may be shorter), because SQLite changes pages in place.
- Anything else: FastCDC 2020 cut points (64 KiB on average before the minimum is added, 16 KiB at least, 256 KiB at
  most, normalised chunking 1, seed 0), which survive insertions and deletions.

The rule is no part of any format: manifests name chunks by id, whoever cut them. Another rule would only end
deduplication against what is stored already, which is why the version of pyfastcdc is pinned and a test holds cut
points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.errors import GitDatasetsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SMALL = 128 * 1024
"""The largest content that is one chunk."""

SQLITE_BLOCK = 64 * 1024
SQLITE_HEADER = b"SQLite format 3\0"
"""How every SQLite database begins."""


def split(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Cut the content that `read` gives into chunks; the empty content has none.

    `read(n)` returns at most n bytes, and b"" at the end only. Memory stays flat whatever the size.
    """
    stream = _Stream(read)
    head = stream.peek(SMALL + 1)
    if len(head) <= SMALL:
        if head:
            yield head
    elif head.startswith(SQLITE_HEADER):
        while block := stream.exactly(SQLITE_BLOCK):
            yield block
    else:
        yield from _content_defined(stream)


class _Stream:
    """`read`, with a look at what comes first. cut_stream wants an object with a read method."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        """The next `size` bytes (fewer at the end), left in place."""
        self._ahead = self.exactly(size)
        return self._ahead

    def read(self, size: int) -> bytes:
        """At most `size` bytes; b"" at the end."""
        if self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
            return data
        return self._read(size)

    def exactly(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end."""
        data = self.read(size)
        if len(data) in (0, size):
            return data
        parts = [data]
        missing = size - len(data)
        while missing and (data := self.read(missing)):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)


def _content_defined(stream: _Stream) -> Iterator[bytes]:
    try:
        from pyfastcdc.cy import FastCDC
    except ImportError as error:  # its pure-Python twin cuts alike, at 8 MB/s
        raise GitDatasetsError(
            "pyfastcdc has no compiled extension for this Python and platform, so large files cannot be cut: "
            "run git-datasets with a Python that pyfastcdc has a wheel for, or build pyfastcdc with a C compiler"
        ) from error
    cutter = FastCDC(65536, min_size=16384, max_size=262144, normalized_chunking=1, seed=0)
    for chunk in cutter.cut_stream(stream):
        yield bytes(chunk.data)  # the view is void as soon as the next chunk is asked for
