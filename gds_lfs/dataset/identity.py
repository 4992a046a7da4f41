"""What makes two rows the same row, and two results the same result.

A row's content key is the SHA-256 over its fields, sorted by name: for each the name and the value, both behind their
length (u32, little-endian). A value is one letter and its bytes: `n` for NULL, `i` decimal digits, `r` the eight bytes
of a big-endian double, `s` UTF-8, `b` bytes, `f` a file's oid. A row's id is the first 32 hex digits of the key it had
when it was added, and stays what it is when fields come and go.

A derived value's key is the SHA-256 over its type's spelling, its code's fingerprint and its inputs, written alike.
"""

from __future__ import annotations

import hashlib
import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.dataset.fieldtype import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gds_lfs.content.hashing import Oid

_ID = re.compile(r"[0-9a-f]{32}")


class FileRef(NamedTuple):
    """The file in a cell: what it holds, and the extension of its name."""

    oid: Oid
    size: int
    extension: str


Cell = Scalar | FileRef
"""What a row has in a field."""


def content_key(cells: Iterable[tuple[str, Cell]]) -> bytes:
    """The content key of a row, given as (field's name, value)."""
    return _digest(part for name, cell in sorted(cells, key=_name) for part in (name.encode(), _encoded(cell)))


def row_id(key: bytes) -> str:
    """The id of a row that is added with this content key."""
    return key.hex()[:32]


def derived_key(spelling: str, code: str, inputs: Iterable[Cell]) -> bytes:
    """The key of a derived value."""
    return _digest([spelling.encode(), code.encode(), *map(_encoded, inputs)])


def file_path(field: str, identity: str, extension: str) -> str:
    """Where a row's file is, relative to the dataset's folder: `image/ab/abcd….png`, one stem in every field."""
    # An id that a user wrote by hand need not be fit for a file's name.
    stem = identity if _ID.fullmatch(identity) else row_id(hashlib.sha256(identity.encode()).digest())
    return f"{field}/{stem[:2]}/{stem}.{extension}"


def _name(pair: tuple[str, Cell]) -> str:
    return pair[0]


def _encoded(cell: Cell) -> bytes:
    if cell is None:
        return b"n"
    if isinstance(cell, str):
        return b"s" + cell.encode("utf-8", "surrogatepass")
    if isinstance(cell, int):
        return b"i%d" % cell
    if isinstance(cell, float):
        return b"r" + struct.pack(">d", cell)
    if isinstance(cell, FileRef):
        return b"f" + cell.oid
    return b"b" + cell


def _digest(parts: Iterable[bytes]) -> bytes:
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(4, "little") + part)
    return state.digest()
