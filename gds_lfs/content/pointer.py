"""The pointer: the short text that git stores in place of a file's content.

::

    version git-datasets/1
    oid sha256:<64 lower-case hex digits>
    size <decimal>

Exactly these three lines in this order, each ended by one LF; ASCII; at most 1 KiB. The size has no sign and no
leading zeros and fits in 63 bits. The empty content (size 0, the hash of nothing) is the one pointer of size 0; it is
valid to read, though an empty file is stored as an empty blob and not as a pointer. Any other bytes are no pointer: a
content has exactly one encoding, and it depends on nothing but the content.

git may hand a pointer back with CRLF line ends (`text eol=crlf`, `core.autocrlf`). `recognise` takes that text for the
pointer it was; `decode` does not.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content.hashing import EMPTY, Oid

if TYPE_CHECKING:
    import os

PREFIX = b"version git-datasets/"
"""How every pointer begins, of this version or a later one."""

MAX_SIZE = 1024
"""No pointer is longer: a blob above this size need not be looked at."""

MAX_CONFLICT_SIZE = 8 * MAX_SIZE
"""No conflict of pointers is longer: three of them, and markers that carry labels of any length."""

_TEXT = re.compile(rb"version git-datasets/1\noid sha256:([0-9a-f]{64})\nsize (0|[1-9][0-9]{0,18})\n")
_LARGEST_CONTENT = 2**63 - 1
_OID_LINE = b"oid sha256:"


class MalformedPointer(ValueError):
    """Bytes that are not a pointer. The message says in what way, for whoever must repair it."""


class Pointer(NamedTuple):
    """A content, by its id and its size in bytes."""

    oid: Oid
    size: int

    def encode(self) -> bytes:
        """The one text that stands for this content."""
        return b"version git-datasets/1\noid sha256:%s\nsize %d\n" % (self.oid.hex().encode(), self.size)


def decode(data: bytes) -> Pointer:
    """Read a pointer; raises MalformedPointer for anything but its one encoding."""
    match = _TEXT.fullmatch(data)
    if match is None:
        raise MalformedPointer(_complaint(data))
    oid, size = unhexlify(match[1]), int(match[2])
    if (size == 0) != (oid == EMPTY):
        raise MalformedPointer("the size 0 and the hash of the empty content go together")
    if size > _LARGEST_CONTENT:
        raise MalformedPointer(f"no file is as large as {size} bytes")
    return Pointer(oid, size)


def recognise(data: bytes) -> Pointer | None:
    """The pointer that `data` is, also where git turned its line ends into CRLF; None if it is none."""
    if len(data) > MAX_SIZE or not data.startswith(PREFIX):
        return None
    if b"\r" in data and data.count(b"\r\n") == data.count(b"\n"):
        data = data.replace(b"\r\n", b"\n")
    try:
        return decode(data)
    except MalformedPointer:
        return None


def held_by(file: str | bytes | os.PathLike[str]) -> Pointer | None:
    """The pointer that a file on disk holds in place of its content; None if it holds anything else. Raises OSError."""
    with open(file, "rb", buffering=0) as stream:
        return recognise(stream.read(MAX_SIZE + 1) or b"")


def has_conflict(data: bytes) -> bool:
    """Whether `data` is pointer text that a merge left conflict markers in: never content worth storing."""
    if len(data) > MAX_CONFLICT_SIZE or b"<<<<<<< " not in data:
        return False
    lines = data.split(b"\n")
    return any(line.startswith(b"<<<<<<< ") for line in lines) and any(
        line.startswith((PREFIX, _OID_LINE)) for line in lines
    )


def _complaint(data: bytes) -> str:
    if not data.startswith(PREFIX):
        return "it does not begin with 'version git-datasets/'"
    version = data[len(PREFIX) :].split(b"\n", 1)[0].rstrip(b"\r")
    if version != b"1":
        return f"it is of version {version[:20].decode('ascii', 'replace')!r}, which this git-datasets does not know"
    if b"\r" in data:
        return "its line ends are CRLF"
    return "it is not exactly the three lines version, oid and size"
