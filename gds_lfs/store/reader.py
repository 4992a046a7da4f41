"""Whole objects out of the store: found, decoded, checked, and a damaged copy put out of the way."""

from __future__ import annotations

import hashlib
from itertools import groupby, islice
from typing import TYPE_CHECKING, Protocol

from gds_lfs.content import manifest
from gds_lfs.content.hashing import EMPTY, OID_SIZE, Oid
from gds_lfs.errors import CorruptObjectError, MissingObjectError
from gds_lfs.store import pack
from gds_lfs.store.threads import ordered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gds_lfs.content.manifest import Manifest
    from gds_lfs.store.catalog import Place
    from gds_lfs.store.frames import Frames

_ATTEMPTS = 3  # a pack may be sealed, or set aside by another process, between looking it up and reading it
_DEEPEST = 8
_PARALLEL = 4 * 1024 * 1024  # a file from this size on is worth threads
_WINDOW = 512


class Places(Protocol):
    """What a reader must know about where things are: LocalStore, seen from here."""

    def locate(self, kind: int, ids: Iterable[Oid]) -> dict[Oid, Place]:
        """The places of those objects that are here."""

    def set_aside(self, place: Place) -> bool:
        """Put the pack of a damaged record out of use, keeping what is whole."""

    def refresh(self) -> None:
        """Look again which packs there are."""


class Reader:
    """Reads objects. Without `repair`, what is damaged is left where it is."""

    def __init__(self, places: Places, frames: Frames, *, repair: bool = True) -> None:
        self._places = places
        self._frames = frames
        self._repair = repair

    def pieces(self, oid: Oid) -> Iterator[bytes]:
        """A file's content, chunk by chunk, each checked before it is given out, the whole at the end."""
        if oid == EMPTY:
            return
        try:
            whole = self._find(pack.CHUNKS, oid)
            if whole is not None:
                yield whole
            else:
                yield from self._concatenation(self.manifest(oid))
        except MissingObjectError as error:
            raise MissingObjectError(f"object {oid.hex()} is not here, or not wholly: {error}", oid) from error
        except CorruptObjectError as error:
            raise CorruptObjectError(f"object {oid.hex()} is damaged in the local store: {error}", oid) from error

    def manifest(self, oid: Oid) -> Manifest:
        """The manifest of a file of several chunks; raises MissingObjectError and CorruptObjectError."""
        data = self._find(pack.MANIFESTS, oid)
        if data is None:
            ids = self._find(pack.MANIFEST_OBJECTS, oid)
            if ids is None:
                raise MissingObjectError(f"object {oid.hex()} is not in the local store", oid)
            data = b"".join([self.chunk(ids[at : at + OID_SIZE]) for at in range(0, len(ids), OID_SIZE)])
        try:
            return manifest.decode(oid, data)
        except manifest.MalformedManifest as error:
            raise CorruptObjectError(f"the manifest of {oid.hex()} cannot be used: {error}", oid) from error

    def chunk(self, oid: Oid, depth: int = 0) -> bytes:
        """A chunk, at the end of `depth` others that are encoded on each other.

        Raises MissingObjectError and CorruptObjectError.
        """
        if depth > _DEEPEST:
            raise CorruptObjectError(f"chunk {oid.hex()} is encoded on others in a circle", oid)
        data = self._find(pack.CHUNKS, oid, depth)
        if data is None:
            raise MissingObjectError(f"object {oid.hex()} is not in the local store", oid)
        return data

    def _concatenation(self, listed: Manifest) -> Iterator[bytes]:
        digest = hashlib.sha256()
        ahead = self._in_parallel if listed.size >= _PARALLEL else self._in_turn
        for (oid, size), data in zip(listed.chunks, ahead([oid for oid, _ in listed.chunks]), strict=True):
            if len(data) != size:
                raise CorruptObjectError(f"chunk {oid.hex()} has not the size that is listed", oid)
            digest.update(data)
            yield data
        if digest.digest() != listed.oid:
            raise CorruptObjectError("its chunks do not make up its hash", listed.oid)

    def _in_turn(self, ids: list[Oid]) -> Iterator[bytes]:
        return map(self.chunk, ids)

    def _in_parallel(self, ids: list[Oid]) -> Iterator[bytes]:
        """The chunks in order, decoded and checked ahead by other threads, record by record."""
        for chunks in ordered(self._by_record(ids), lambda group: [self.chunk(oid) for oid in group]):
            yield from chunks

    def _by_record(self, ids: list[Oid]) -> Iterator[list[Oid]]:
        """Neighbours that stand in the same record, together."""
        remaining = iter(ids)
        while window := list(islice(remaining, _WINDOW)):
            records = {oid: place[:2] for oid, place in self._places.locate(pack.CHUNKS, window).items()}
            yield from (list(group) for _, group in groupby(window, records.get))

    def _find(self, kind: int, oid: Oid, depth: int = 0) -> bytes | None:
        """The object, checked, from whichever place has it whole; None where it is nowhere."""
        damage: CorruptObjectError | None = None
        for _ in range(_ATTEMPTS):
            place = None
            try:
                if (data := self._frames.cached(kind, oid)) is not None:
                    return data
                place = self._places.locate(kind, [oid]).get(oid)
                if place is None:
                    break
                return self._frames.load(kind, oid, place, lambda base: self.chunk(base, depth + 1))
            except FileNotFoundError:
                self._places.refresh()
            except CorruptObjectError as error:
                damage = error
                place = place or self._places.locate(kind, [oid]).get(oid)
                if not self._repair or place is None or not self._places.set_aside(place):
                    break
        if damage is not None:
            raise damage
        return None
