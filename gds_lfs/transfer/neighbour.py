"""Content from the store of another repository on the same machine.

What was committed there need not have been pushed anywhere, and git clones such a repository all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.errors import GitDatasetsError
from gds_lfs.store.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from gds_lfs.content.hashing import Oid

__all__ = ["take_over"]


def take_over(store: LocalStore, neighbour: Path, wanted: Collection[Oid]) -> dict[Oid, int]:
    """Copy those contents that the store at `neighbour` has, whole; their sizes in bytes. What cannot be read there
    counts as absent. Raises StoreWriteError.
    """
    absent = store.missing(wanted)
    if not absent or not (neighbour / "packs").is_dir():
        return {}
    source = LocalStore(neighbour)
    taken = {}
    with store.writer(framed=True) as writer:
        for oid in _whole(source, absent):
            taken[oid] = writer.add(_Stream(source.pieces(oid)).read).size
    return taken


def _whole(source: LocalStore, wanted: Collection[Oid]) -> Iterator[Oid]:
    """Those that can be read to their end: a writer that met an error would write no more."""
    try:
        here = sorted(set(wanted) - source.missing(wanted))
    except (GitDatasetsError, OSError):
        return
    for oid in here:
        try:
            source.verify(oid)
        except (GitDatasetsError, OSError):
            continue
        yield oid


class _Stream:
    """Chunks, read in pieces of any size."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end only."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._rest = memoryview(chunk)
        piece, self._rest = self._rest[:size], self._rest[size:]
        return bytes(piece)
