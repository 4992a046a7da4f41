"""The index file of gitformat-index(5), versions 2 to 4, read and written with dulwich.

dulwich's own reader of a whole index forgets what the cached trees (TREE) say and takes an extension that must
be understood for the checksum. So entries are read one by one here, and extensions are kept as their bytes:

    extension  4-byte name, u32 length, data; a name that starts with a capital letter may be ignored

Kept are TREE, where changed paths are marked for git to compute again, and REUC (resolve undo). Dropped, as git
may do any time: untracked cache, file system monitor, and the offset tables EOIE and IEOT.

Two things that dulwich gets wrong are left to git: names as long as the 12 bits for their length can say, or
longer, and in version 4 a name that shares all but 128 bytes or more of the one before it.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing import TypeAlias

    from dulwich.index import SerializedIndexEntry
    from dulwich.object_format import ObjectFormat
    from dulwich.objects import ObjectID

    # what an entry knows of its file: ctime and mtime in s and ns, dev, ino, uid, gid, size
    StatData: TypeAlias = tuple[tuple[int, int], tuple[int, int], int, int, int, int, int]

UNKNOWN_STAT: StatData = ((0, 0), (0, 0), 0, 0, 0, 0, 0)
_BEFORE_ID = 40
_EXTENDED = 0x40
_STAGE = 0x3000
_LONG_NAME = 0xFFF
_FAR = 0x80
_KEPT = (b"TREE", b"REUC")


class UnsupportedIndexError(Exception):
    """An index that only git can change: split, sparse, newer than this code, or damaged."""


@dataclass
class IndexFile:
    """Entries by path: stage 0 in `entries`, the others, in order, in `conflicts`. Extensions as their bytes."""

    object_format: str
    version: int = 2
    entries: dict[bytes, SerializedIndexEntry] = field(default_factory=dict)
    conflicts: dict[bytes, list[SerializedIndexEntry]] = field(default_factory=dict)
    extensions: dict[bytes, bytes] = field(default_factory=dict)
    hashed: bool = True

    def put(self, path: bytes, mode: int, sha: bytes, stat: StatData = UNKNOWN_STAT) -> None:
        """Set the stage 0 entry of a path; the id is in hex."""
        ctime, mtime, dev, ino, uid, gid, size = stat
        self.entries[path] = _entry_class()(
            path, ctime, mtime, dev, ino, mode, uid, gid, size, cast("ObjectID", sha), flags=0, extended_flags=0
        )


def stat_data(entry: SerializedIndexEntry) -> StatData:
    """The stat data of an entry."""
    # dulwich would also write times that are plain numbers, but reads pairs
    ctime, mtime = cast("tuple[tuple[int, int], tuple[int, int]]", (entry.ctime, entry.mtime))
    return (ctime, mtime, entry.dev, entry.ino, entry.uid, entry.gid, entry.size)


def decode(data: bytes, object_format: str) -> IndexFile:
    """Read an index file. Raises UnsupportedIndexError for what this module cannot write back."""
    from dulwich.index import UnsupportedIndexFormat
    from dulwich.object_format import get_object_format

    kind = get_object_format(object_format)
    body, trailer = data[: -kind.oid_length], data[-kind.oid_length :]
    index = IndexFile(object_format, hashed=trailer != bytes(kind.oid_length))
    if index.hashed and kind.hash_object(body) != trailer:
        raise UnsupportedIndexError("the index is damaged")
    try:
        _read_extensions(index, body, _read_entries(index, body, kind))
    except UnsupportedIndexFormat as error:
        raise UnsupportedIndexError(f"the index has version {error.index_format_version}") from error
    except (struct.error, AssertionError, IndexError, ValueError) as error:
        raise UnsupportedIndexError("the index is damaged") from error
    return index


def encode(index: IndexFile) -> bytes:
    """Write an index file; version 2 becomes 3 where an entry has extended flags. Raises UnsupportedIndexError."""
    from dulwich.index import IndexExtension, write_index
    from dulwich.object_format import get_object_format

    kind = get_object_format(index.object_format)
    entries = _in_order(index)
    if any(len(entry.name) >= _LONG_NAME for entry in entries):
        raise UnsupportedIndexError("a path is too long")
    if index.version == 4 and any(map(_is_far, entries, entries[1:])):
        raise UnsupportedIndexError("paths differ too much for version 4 of the index")
    file = io.BytesIO()
    extensions = [IndexExtension(name, content) for name, content in index.extensions.items()]
    write_index(file, entries, index.version, extensions, kind)
    body = file.getvalue()
    return body + (kind.hash_object(body) if index.hashed else bytes(kind.oid_length))


def _read_entries(index: IndexFile, body: bytes, kind: ObjectFormat) -> int:
    """Fill entries and conflicts; where the extensions begin."""
    from dulwich.index import read_cache_entry, read_index_header

    file = io.BytesIO(body)
    index.version, count = read_index_header(file)
    flags_at = _BEFORE_ID + kind.oid_length
    name = b""
    for _ in range(count):
        if index.version == 4:
            flags = file.tell() + flags_at
            if body[flags + (4 if body[flags] & _EXTENDED else 2)] >= _FAR:
                raise UnsupportedIndexError("paths differ too much for version 4 of the index")
        entry = read_cache_entry(file, index.version, name, kind)
        name = entry.name
        if len(name) >= _LONG_NAME:
            raise UnsupportedIndexError("a path is too long")
        if entry.flags & _STAGE:
            index.conflicts.setdefault(name, []).append(entry)
        else:
            index.entries[name] = entry
    return file.tell()


def _read_extensions(index: IndexFile, body: bytes, position: int) -> None:
    while position < len(body):
        name, length = struct.unpack_from(">4sI", body, position)
        position += 8
        if name in _KEPT:
            index.extensions[name] = body[position : position + length]
        elif not b"A" <= name[:1] <= b"Z":
            kind = {b"link": "split", b"sdir": "sparse"}.get(name, f"of a newer kind ({name!r})")
            raise UnsupportedIndexError(f"the index is {kind}")
        position += length
    if position != len(body):
        raise UnsupportedIndexError("the index is damaged")


def _in_order(index: IndexFile) -> list[SerializedIndexEntry]:
    """All entries in the order of the file: by name, then by stage."""
    if not index.conflicts:
        return [entry for _, entry in sorted(index.entries.items())]
    stages = {path: [entry] for path, entry in index.entries.items()} | index.conflicts
    return [entry for _, entries in sorted(stages.items()) for entry in entries]


def _is_far(before: SerializedIndexEntry, entry: SerializedIndexEntry) -> bool:
    """Whether version 4 takes 128 bytes or more off the name before to make this one."""
    return not entry.name.startswith(before.name[: max(0, len(before.name) - _FAR + 1)])


@cache
def _entry_class() -> type[SerializedIndexEntry]:
    """Imported once, not for each of many entries."""
    from dulwich.index import SerializedIndexEntry

    return SerializedIndexEntry
