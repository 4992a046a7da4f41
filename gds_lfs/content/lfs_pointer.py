"""The pointer of git-lfs, which names a content by the same hash as ours does.

::

    version https://git-lfs.github.com/spec/v1
    oid sha256:<64 lower-case hex digits>
    size <decimal>

Lines with keys of extensions (`ext-0-…`) may stand before `oid`; such a pointer names what an extension made of the
content, so it is none of those that can be converted. The version line of before git-lfs 1.0 is read as well.
"""

from __future__ import annotations

import re

from gds_lfs.content.hashing import EMPTY
from gds_lfs.content.pointer import MAX_SIZE, Pointer

__all__ = ["encode", "recognise"]

_VERSIONS = rb"(?:https://git-lfs\.github\.com/spec/v1|https://hawser\.github\.com/spec/v1|http://git-media\.io/v/2)"
_TEXT = re.compile(rb"version " + _VERSIONS + rb"\noid sha256:([0-9a-f]{64})\nsize (0|[1-9][0-9]{0,18})\n?")


def encode(pointer: Pointer) -> bytes:
    """The text that git-lfs writes for this content."""
    head = b"version https://git-lfs.github.com/spec/v1"
    return b"%s\noid sha256:%s\nsize %d\n" % (head, pointer.oid.hex().encode(), pointer.size)


def recognise(data: bytes) -> Pointer | None:
    """The pointer that `data` is, also with CRLF line ends; None if it is none."""
    if len(data) > MAX_SIZE or not data.startswith(b"version http"):
        return None
    match = _TEXT.fullmatch(data.replace(b"\r\n", b"\n"))
    if match is None:
        return None
    pointer = Pointer(bytes.fromhex(match[1].decode()), int(match[2]))
    return pointer if (pointer.size == 0) == (pointer.oid == EMPTY) else None
