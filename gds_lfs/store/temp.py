"""Packs that are being written, or were when their writer died.

`tmp/<name>.lock` is made first and locked as long as the writer lives; `tmp/<name>.pack` grows by whole records, and
`tmp/<name>.part` gets the parts of a pack that comes from elsewhere. A sealed pack moves to its place before the lock
file goes, so a lock alone means that the catalog may lack a pack, and a lock that can be taken means that nobody will
finish what it guards.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from gds_lfs.errors import StoreWriteError
from gds_lfs.files import sync_folder, write_all
from gds_lfs.lock import FileLock
from gds_lfs.store import pack
from gds_lfs.store.catalog import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.store.files import OpenFiles

    Sealed = Callable[[Path, Sequence[pack.Entry]], None]


class _Unsealed:
    """A file that is to become a pack. Every method raises StoreWriteError where the disk does not take it."""

    def __init__(self, folder: Path, suffix: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock, self._path = _claim(folder, suffix)
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
            self._descriptor = os.open(self._path, flags, 0o666)
        except OSError as error:
            raise _write_error(folder, error) from error

    def abandon(self) -> None:
        """Leave what is written to whoever recovers it."""
        self._close()
        self._lock.release()

    def _settle(self, name: str, packs: Path) -> Path:
        """Move the complete file under `packs`, durably; its path there. Raises OSError."""
        os.fsync(self._descriptor)
        self._path.chmod(os.fstat(self._descriptor).st_mode & ~0o222)
        self._close()
        target = packs / name[:2] / f"{name}.pack"
        _move(self._path, target, packs)
        return target

    def _tell(self, sealed: Sealed, target: Path, entries: Sequence[pack.Entry]) -> None:
        try:
            sealed(target, entries)
        except BaseException:
            self._lock.release()  # it stays, and says that the catalog lacks a pack
            raise
        self._lock.remove()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class TempPack(_Unsealed):
    """A pack that this process makes, record by record."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ".pack")
        try:
            self._stream = pack.PackStream(lambda data: write_all(self._descriptor, data))
        except OSError as error:
            raise _write_error(folder, error) from error

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._stream.size

    def append(self, record: pack.Record) -> None:
        """Write a record whole; a part of one is taken back."""
        try:
            self._stream.add(record)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
                os.lseek(self._descriptor, self.size, os.SEEK_SET)
            raise _write_error(self._path, error) from error

    def digest(self) -> None:
        """Hash what was written by now: `seal` has less to do then."""
        self._stream.digest()

    def seal(self, packs: Path, sealed: Sealed) -> None:
        """Complete the pack and move it under `packs`; `sealed` is told before the lock goes."""
        try:
            target = self._settle(self._stream.finish().hex(), packs)
        except OSError as error:
            self.abandon()
            raise _write_error(self._path, error) from error
        self._tell(sealed, target, self._stream.entries)


class IncomingPack(_Unsealed):
    """A pack that is complete elsewhere, written in parts as they arrive, in any order and from any thread.

    Until it is sealed nobody reads it: what is between its parts looks like data.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ".part")
        self._writing = threading.Lock()

    def write(self, offset: int, data: memoryview) -> None:
        """Put a part in its place."""
        try:
            if sys.platform == "win32":
                with self._writing:
                    os.lseek(self._descriptor, offset, os.SEEK_SET)
                    write_all(self._descriptor, data)
            else:
                written = 0
                while written < len(data):
                    written += os.pwrite(self._descriptor, data[written:], offset + written)
        except OSError as error:
            raise _write_error(self._path, error) from error

    def seal(self, name: str, packs: Path, sealed: Sealed, entries: Sequence[pack.Entry]) -> None:
        """Move the complete pack under `packs`, which has none of that name; `sealed` is told before the lock goes."""
        try:
            target = self._settle(name, packs)
        except OSError as error:
            self.abandon()
            raise _write_error(self._path, error) from error
        self._tell(sealed, target, entries)


class TempPacks:
    """What is in the temporary packs of all processes, as far as complete records go."""

    def __init__(self, folder: Path, files: OpenFiles) -> None:
        self._folder = folder
        self._files = files
        self._scanned: dict[Path, int] = {}
        self._places: dict[tuple[int, Oid], Place] = {}

    def refresh(self) -> bool:
        """Read what has been added; whether a pack may have been sealed that the catalog lacks."""
        names = _listing(self._folder)
        present = {self._folder / name for name in names if name.endswith(".pack")}
        unsealed = {name[:-5] for name in names if name.endswith((".pack", ".part"))}
        gone = self._scanned.keys() - present
        if gone:
            self._places = {key: place for key, place in self._places.items() if place.path not in gone}
        for path in gone:
            del self._scanned[path]
            self._files.forget(path)
        for path in present:
            with suppress(FileNotFoundError):
                self._scan(path)
        return any(name.endswith(".lock") and name[:-5] not in unsealed for name in names)

    def locate(self, kind: int, ids: Iterable[Oid]) -> dict[Oid, Place]:
        """The places of those `ids` that `refresh` has seen."""
        return {oid: self._places[kind, oid] for oid in ids if (kind, oid) in self._places}

    def _scan(self, path: Path) -> None:
        end = path.stat().st_size
        start = self._scanned.get(path, 0)
        for offset, header in pack.scan(partial(self._files.read, path), end, start):
            start = offset + header.record_size
            for oid, size in header.members:
                self._places[header.kind, oid] = Place(path, offset, header.record_size, size)
        self._scanned[path] = start


def abandoned(folder: Path) -> Iterator[tuple[Path, FileLock]]:
    """The temporary packs that nobody alive writes, each with its lock, which the caller now holds.

    The pack may not exist: its writer then died between moving it to its place and telling the catalog.
    """
    for name in _listing(folder):
        if name.endswith(".lock"):
            lock = FileLock(folder / name)
            if lock.take():
                part = folder / f"{name[:-5]}.part"
                yield part if part.exists() else part.with_suffix(".pack"), lock


def _listing(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except FileNotFoundError:
        return set()


def _claim(folder: Path, suffix: str) -> tuple[FileLock, Path]:
    while True:
        name = os.urandom(8).hex()
        lock = FileLock(folder / f"{name}.lock")
        with suppress(FileExistsError):
            lock.create()
            return lock, folder / f"{name}{suffix}"


def _move(path: Path, target: Path, packs: Path) -> None:
    """Rename, durably. A pack of the same name is the same pack."""
    if not target.parent.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        sync_folder(packs)
        sync_folder(packs.parent)
    os.replace(path, target)
    sync_folder(target.parent)


def _write_error(path: Path, error: OSError) -> StoreWriteError:
    return StoreWriteError(f"cannot write {path}: {error.strerror or error}")
