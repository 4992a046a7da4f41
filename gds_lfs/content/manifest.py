"""The manifest: which chunks, in which order, make up a file that is larger than one chunk.

::

    4   magic "GDSM"
    1   version, 1
    8   size of the file, u64
    4   number of chunks, u32
    36  for each chunk: its id (32 bytes), its size (u32)

Little-endian. The file's own id is not in the bytes: the record that holds them is filed under it. Exactly one encoding
is valid: every chunk's size is above 0, the sizes add up to the file's, and nothing follows the last chunk.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gds_lfs.content.hashing import Oid

_HEAD = struct.Struct("<4sBQI")
_CHUNK = struct.Struct("<32sI")
_MAGIC = b"GDSM"
_VERSION = 1


class MalformedManifest(ValueError):
    """Bytes that are not a manifest."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The file `oid` of `size` bytes is the concatenation of `chunks`, each an id and a size."""

    oid: Oid
    size: int
    chunks: tuple[tuple[Oid, int], ...]

    def encode(self) -> bytes:
        """The one encoding; ValueError where the sizes of the chunks do not add up to the file's."""
        if sum(size for _, size in self.chunks) != self.size or not all(size > 0 for _, size in self.chunks):
            raise ValueError("the sizes of the chunks do not add up to the size of the file")
        pack = _CHUNK.pack
        return _HEAD.pack(_MAGIC, _VERSION, self.size, len(self.chunks)) + b"".join(
            [pack(oid, size) for oid, size in self.chunks]
        )


def decode(oid: Oid, data: bytes | memoryview) -> Manifest:
    """Read the manifest of the file `oid`; raises MalformedManifest for anything but its one encoding."""
    if len(data) < _HEAD.size:
        raise MalformedManifest("shorter than a manifest's head")
    magic, version, size, count = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise MalformedManifest("it does not begin with GDSM")
    if version != _VERSION:
        raise MalformedManifest(f"it is of version {version}, which this git-datasets does not know")
    if len(data) != _HEAD.size + count * _CHUNK.size:
        raise MalformedManifest(f"it has {len(data)} bytes, which is not the length of {count} chunks")
    chunks = tuple(_CHUNK.iter_unpack(memoryview(data)[_HEAD.size :]))
    if sum(length for _, length in chunks) != size or not all(length for _, length in chunks):
        raise MalformedManifest("the sizes of its chunks do not add up to the size of the file")
    return Manifest(oid, size, chunks)
