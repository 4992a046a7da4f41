"""Ids: the SHA-256 of a content, as 32 raw bytes. Hex is for pointers, file names and messages only.

The same id that `sha256sum` prints and that git-lfs uses.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

Oid = bytes

OID_SIZE = 32

_PIECE = 1024 * 1024
_HEX = re.compile(f"[0-9a-f]{{{2 * OID_SIZE}}}")


def oid_of(data: bytes | bytearray | memoryview) -> Oid:
    """The id of `data`."""
    return hashlib.sha256(data).digest()


def oid_of_file(path: str | bytes | os.PathLike[str]) -> Oid:
    """The id of a file's content, read in pieces; raises OSError."""
    state = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            state.update(piece)
    return state.digest()


EMPTY: Oid = oid_of(b"")
"""The id of the empty content, which is never stored."""


def from_hex(text: str) -> Oid:
    """The id written as 64 lower-case hex digits; ValueError for anything else."""
    if _HEX.fullmatch(text) is None:
        raise ValueError(f"not an object id (64 lower-case hex digits): {text!r}")
    return bytes.fromhex(text)
