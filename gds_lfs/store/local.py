"""The repository's own object store: everything a reader asks of it, and the way to a writer.

::

    <root>/packs/ab/<sha256>.pack      sealed packs
    <root>/tmp/<random>.pack, .part, .lock    packs being written, see store/temp.py
    <root>/catalog.sqlite              see store/catalog.py; may be deleted
    <root>/quarantine/<sha256>.pack    packs in which a damaged record was found; what was whole has been copied out

A file is here if its id is that of a chunk, or if it has a manifest all of whose chunks are here.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import EMPTY, Oid
from gds_lfs.content.manifest import Manifest
from gds_lfs.errors import CorruptObjectError, LockedError, MissingObjectError, StoreWriteError
from gds_lfs.store import pack, recovery
from gds_lfs.store.catalog import Catalog, Place, table_of_contents
from gds_lfs.store.files import OpenFiles
from gds_lfs.store.frames import Frames
from gds_lfs.store.reader import Reader
from gds_lfs.store.temp import IncomingPack, TempPacks, abandoned
from gds_lfs.store.writer import StoreWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_MOMENT = 0.1


class LocalStore:
    """The store under `root` (`<common git dir>/datasets`). One that does not exist reads as empty.

    Safe to read from several threads. Nothing is created before something is written. Whatever looks for an object
    raises LockedError where another process keeps the catalog locked.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._packs = str(root / "packs")
        self._empty_until = 0.0
        self._lock = threading.RLock()
        self._catalog: Catalog | None = None
        self._files = OpenFiles()
        self._frames = Frames(self._files)
        self._reader = Reader(self, self._frames)
        self._checker = Reader(self, Frames(self._files), repair=False)
        self._temps = TempPacks(root / "tmp", self._files)

    def has(self, oid: Oid) -> bool:
        """Whether the file's whole content is here."""
        return not self.missing([oid])

    def missing(self, oids: Iterable[Oid]) -> set[Oid]:
        """Those files whose content is not here, or not wholly."""
        wanted = set(oids) - {EMPTY}
        large = wanted - self.locate(pack.CHUNKS, wanted).keys()
        if not large:
            return set()
        known = self._listed(large)
        present = self.locate(pack.CHUNKS, {oid for each in known.values() for oid, _ in each.chunks}).keys()
        return large - {oid for oid, each in known.items() if all(chunk in present for chunk, _ in each.chunks)}

    def manifest(self, oid: Oid) -> Manifest:
        """The file's chunks; those of a file of one chunk are that chunk.

        Raises MissingObjectError where neither is here, CorruptObjectError where the manifest is damaged.
        """
        found = self.manifests([oid])
        return found[oid] if found else self._reader.manifest(oid)

    def manifests(self, oids: Iterable[Oid]) -> dict[Oid, Manifest]:
        """`manifest` for many at once; those that are not here, or damaged, are left out."""
        wanted = set(oids)
        small = self.locate(pack.CHUNKS, wanted)
        found = {oid: Manifest(oid, place.size, ((oid, place.size),)) for oid, place in small.items()}
        if EMPTY in wanted:
            found[EMPTY] = Manifest(EMPTY, 0, ())
        found.update(self._listed(wanted - found.keys()))
        return found

    def pieces(self, oid: Oid) -> Iterator[bytes]:
        """The file's content, chunk by chunk, each checked before it is given out and the whole at the end.

        Raises MissingObjectError and CorruptObjectError. What is damaged is set aside, so that it counts as missing
        from then on and can be fetched anew.
        """
        return self._reader.pieces(oid)

    def read(self, oid: Oid) -> bytes:
        """The file's content; raises as `pieces` does."""
        return b"".join(self.pieces(oid))

    def verify(self, oid: Oid) -> int:
        """The file's size, once it was read from the disk and checked; raises as `pieces` does, sets nothing aside."""
        return sum(map(len, self._checker.pieces(oid)))

    def locate(self, kind: int, ids: Iterable[Oid]) -> dict[Oid, Place]:
        """The places of those objects that are here, in sealed packs or in one that a process is still writing."""
        wanted = list(ids)
        catalog = self._open_catalog()
        stamp = catalog.stamp() if catalog else None
        found = catalog.locate(kind, wanted) if catalog else {}
        absent = [oid for oid in wanted if oid not in found]
        return found | self._locate_unsealed(kind, absent, stamp) if absent else found

    def read_record(self, place: Place) -> pack.Record:
        """The record at a place that `locate` gave, as stored; its members are not checked.

        Raises CorruptObjectError where it is not a record, MissingObjectError where its pack is gone (locate again).
        """
        try:
            return self._frames.record(place)
        except FileNotFoundError as error:
            raise MissingObjectError(f"{place.path} is gone") from error

    def chunk(self, oid: Oid) -> bytes:
        """A chunk, checked; raises MissingObjectError and CorruptObjectError."""
        return self._reader.chunk(oid)

    def packs(self) -> list[Path]:
        """The sealed packs."""
        catalog = self._open_catalog()
        return catalog.packs() if catalog else []

    def writer(self, framed: bool) -> StoreWriter:
        """A writer with a pack of its own; what dead writers left is recovered first. Raises StoreWriteError."""
        self.recover()
        return self._new_writer(framed)

    def incoming(self) -> IncomingPack:
        """A place for a pack that comes whole, from elsewhere. Raises StoreWriteError."""
        incoming = IncomingPack(self._root / "tmp")
        with suppress(OSError):  # a catalog that is made when there is a pack reads it again
            os.makedirs(self._packs, exist_ok=True)
            self._open_catalog()
        return incoming

    def has_pack(self, name: str) -> bool:
        """Whether there is a sealed pack of this name: its id in hex."""
        return os.path.exists(os.path.join(self._packs, name[:2], f"{name}.pack"))

    def adopt(self, incoming: IncomingPack, name: str, entries: Sequence[pack.Entry]) -> None:
        """Seal a pack that has come whole, and whose records, `entries`, were checked. Raises StoreWriteError."""
        incoming.seal(name, self._root / "packs", self._add_pack, entries)

    def recover(self) -> int:
        """Seal what is whole in the packs of writers that died; how many there were. Raises StoreWriteError."""
        count = 0
        for path, lock in abandoned(self._root / "tmp"):
            try:
                with suppress(FileNotFoundError), self._new_writer(False) as writer:
                    recovery.copy_whole_records(path, None, writer, self.chunk)
                self.refresh()
                path.unlink(missing_ok=True)
                lock.remove()
                count += 1
            finally:
                lock.release()
        return count

    def refresh(self) -> None:
        """Look again which packs there are: one has gone, or someone has put one there."""
        if (catalog := self._open_catalog()) is not None:
            catalog.refresh()

    def set_aside(self, place: Place) -> bool:
        """Move the pack of a damaged record to `quarantine/` when its whole records have been copied to a new one.

        False where that cannot be: the pack is still being written, or the store cannot.
        """
        path = place.path
        catalog = self._open_catalog()
        if catalog is None or path.parent.parent != self._root / "packs":
            return False
        try:
            damaged = path.stat()
            catalog.drop_pack(path)  # so that its own members do not count as stored
            with self._new_writer(False) as writer:
                recovery.copy_whole_records(path, table_of_contents(path), writer, self.chunk)
            if os.path.samestat(damaged, path.stat()):  # else nothing was lost, and it is whole again
                self._files.forget(path)
                (self._root / "quarantine").mkdir(exist_ok=True)
                os.replace(path, self._root / "quarantine" / path.name)
        except FileNotFoundError:
            pass  # another process did it
        except (OSError, StoreWriteError, LockedError):
            catalog.refresh()
            return False
        self._frames.clear()
        return True

    def close(self) -> None:
        """Close the catalog and the packs; the store opens them again when asked."""
        self._files.close()
        self._frames.clear()
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None

    def _new_writer(self, framed: bool) -> StoreWriter:
        return StoreWriter(self._root, self._sealed_places, self._add_pack, framed=framed)

    def _open_catalog(self) -> Catalog | None:
        if self._catalog is None and os.path.isdir(self._packs):
            with self._lock:
                if self._catalog is None:
                    self._catalog = Catalog(self._root / "catalog.sqlite", self._root / "packs")
        return self._catalog

    def _sealed_places(self, kind: int, ids: Iterable[Oid]) -> dict[Oid, Place]:
        """What a writer need not store again. It asks at every file: that there is nothing yet holds for a moment, and
        what another process seals meanwhile is at worst stored twice.
        """
        if self._catalog is None and time.monotonic() < self._empty_until:
            return {}
        catalog = self._open_catalog()
        if catalog is None:
            self._empty_until = time.monotonic() + _MOMENT
            return {}
        return catalog.locate(kind, ids)

    def _add_pack(self, path: Path, entries: Sequence[pack.Entry]) -> None:
        self._files.forget(path)  # it may have replaced a damaged one of the same name
        catalog = self._open_catalog()
        if catalog is not None:
            catalog.add_pack(path, entries)

    def _locate_unsealed(self, kind: int, absent: list[Oid], stamp: object) -> dict[Oid, Place]:
        """What the catalog did not know, when its state was `stamp`."""
        with self._lock:
            unlisted = self._temps.refresh()
            found = self._temps.locate(kind, absent)
        catalog = self._open_catalog()
        if catalog is not None and len(found) < len(absent):
            if unlisted:
                catalog.refresh()
            if catalog.stamp() != stamp:  # sealed in the meantime
                found.update(catalog.locate(kind, absent))
        return found

    def _listed(self, oids: set[Oid]) -> dict[Oid, Manifest]:
        """The manifests that are here and whole."""
        here = set(self.locate(pack.MANIFESTS, oids))
        here |= self.locate(pack.MANIFEST_OBJECTS, oids - here).keys()
        found = {}
        for oid in here:
            with suppress(MissingObjectError, CorruptObjectError):
                found[oid] = self._reader.manifest(oid)
        return found
