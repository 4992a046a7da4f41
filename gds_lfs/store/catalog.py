"""The catalog: in which pack, and where in it, the record of an object is.

A SQLite file beside the packs. It holds nothing that the packs' footers do not say, so it is brought into line
with the folder whenever it is opened, and made anew where it is gone, broken or of another version::

    packs(number, name)                              name: the pack's file name without ".pack"
    objects(kind, id, pack, offset, length, size)    one row for each object in each pack
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from gds_lfs.errors import CorruptObjectError, LockedError, StoreWriteError
from gds_lfs.store import pack
from gds_lfs.store.files import open_to_read, read_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gds_lfs.content.hashing import Oid

_VERSION = 1
_BUSY_SECONDS = 30
_BATCH = 500
_ROWS = 150
"""With six values each within the 999 that any SQLite takes in a statement."""
_TAIL = 65536

_SCHEMA = """
CREATE TABLE packs(number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
CREATE TABLE objects(
    kind INTEGER, id BLOB, pack INTEGER, offset INTEGER, length INTEGER, size INTEGER,
    PRIMARY KEY(kind, id, pack)
) WITHOUT ROWID;
"""


class Place(NamedTuple):
    """Where an object's record is (file, offset, length), and the object's own size in bytes."""

    path: Path
    offset: int
    length: int
    size: int


class Catalog:
    """The objects in the packs under `packs`. Safe to use from several threads and processes.

    Every method raises LockedError where another process keeps the file locked for half a minute, and StoreWriteError
    where it can no longer be written.
    """

    def __init__(self, path: Path, packs: Path) -> None:
        self._path = path
        self._packs = packs
        self._lock = threading.RLock()
        self._names: dict[int, Path] = {}
        self._use(self._connect())
        self.refresh()

    def refresh(self) -> None:
        """Bring the rows into line with the packs that are there."""
        if self._known().keys() == set(self._on_disk()):
            return
        try:
            self._reconcile()
        except StoreWriteError:  # a repository that we may only read, or a full disk
            with self._lock:
                self._db.close()
                self._use(_open(":memory:"))
            self._reconcile()

    def locate(self, kind: int, ids: Iterable[Oid]) -> dict[Oid, Place]:
        """The places of those `ids` that are in a pack."""
        found = {}
        remaining = iter(sorted(ids))  # neighbours share pages: half the time for many
        while batch := list(islice(remaining, _BATCH)):
            for oid, number, offset, length, size in self._select(kind, batch):
                if (path := self._path_of(number)) is not None:
                    found[oid] = Place(path, offset, length, size)
        return found

    def stamp(self) -> tuple[int, int]:
        """Differs from an earlier one if rows have come or gone since, in whatever process."""
        return self._rows("PRAGMA data_version")[0][0], self._db.total_changes

    def add_pack(self, path: Path, entries: Sequence[pack.Entry]) -> None:
        """Record what a sealed pack holds."""
        with self._transaction():
            self._insert(path.stem, entries)

    def drop_pack(self, path: Path) -> None:
        """Forget a pack that has gone."""
        with self._transaction():
            self._delete(path.stem)

    def packs(self) -> list[Path]:
        """The sealed packs, by name."""
        return [self._pack_path(name) for name in sorted(self._known())]

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def _select(self, kind: int, ids: list[Oid]) -> list[tuple[Oid, int, int, int, int]]:
        marks = ",".join("?" * len(ids))
        return self._rows(
            f"SELECT id, pack, offset, length, size FROM objects WHERE kind=? AND id IN ({marks})", (kind, *ids)
        )

    def _path_of(self, number: int) -> Path | None:
        """The pack's path; None if another process has just dropped it."""
        if number not in self._names:
            self._names.update((known, self._pack_path(name)) for name, known in self._known().items())
        return self._names.get(number)

    def _pack_path(self, name: str) -> Path:
        return self._packs / name[:2] / f"{name}.pack"

    def _known(self) -> dict[str, int]:
        return dict(self._rows("SELECT name, number FROM packs"))

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.DatabaseError as error:
                self._start_anew(error)
            return self._db.execute(query, values).fetchall()

    def _connect(self) -> sqlite3.Connection:
        try:
            return _open(self._path)
        except sqlite3.OperationalError as error:
            if _is_busy(error):
                raise self._translated(error) from error
            return _open(":memory:")  # a repository that we may only read
        except sqlite3.DatabaseError:
            _remove(self._path)
            return _open(self._path)

    def _use(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._opened = _identity(self._path)
        self._names.clear()
        weakref.finalize(self, db.close)

    def _start_anew(self, error: sqlite3.DatabaseError) -> None:
        """Once the file is broken or removed: the packs, as they are by now, say all that it said."""
        if not _is_about_the_file(error):
            raise error
        same_file = _identity(self._path) == self._opened
        if same_file and isinstance(error, sqlite3.OperationalError):
            raise self._translated(error) from error
        self._db.close()
        if same_file:
            _remove(self._path)
        self._use(self._connect())
        self._reconcile()

    def _translated(self, error: sqlite3.OperationalError) -> LockedError | StoreWriteError:
        if _is_busy(error):
            return LockedError(f"{self._path} is locked by another process: try again when it is done")
        return StoreWriteError(f"cannot write {self._path}: {error}")

    def _on_disk(self) -> Iterator[str]:
        with suppress(FileNotFoundError):
            for folder in os.listdir(self._packs):
                with suppress(NotADirectoryError, FileNotFoundError):
                    for name in os.listdir(self._packs / folder):
                        if name.endswith(".pack") and name.startswith(folder):
                            yield name[: -len(".pack")]

    def _reconcile(self) -> None:
        with self._transaction():
            known = self._known().keys()  # read before the folder: a pack is there before its rows are
            present = set(self._on_disk())
            for name in known - present:
                self._delete(name)
            for name in present - known:
                self._insert(name, table_of_contents(self._pack_path(name)))

    def _insert(self, name: str, entries: Sequence[pack.Entry]) -> None:
        number = self._db.execute("INSERT OR IGNORE INTO packs(name) VALUES(?)", (name,)).lastrowid
        if self._db.execute("SELECT changes()").fetchone() == (0,):
            return  # another process was first
        rows = [
            (header.kind, oid, number, offset, length, size)
            for offset, header in entries
            for length in [header.record_size]
            for oid, size in header.members
        ]
        remaining = iter(sorted(rows))
        while batch := list(islice(remaining, _ROWS)):  # for each statement sqlite3 lets other threads go first
            places = ",".join(["(?,?,?,?,?,?)"] * len(batch))
            self._db.execute(f"INSERT OR IGNORE INTO objects VALUES {places}", list(chain.from_iterable(batch)))

    def _delete(self, name: str) -> None:
        number = "(SELECT number FROM packs WHERE name=?)"
        self._db.execute(f"DELETE FROM objects WHERE pack={number}", (name,))
        self._db.execute("DELETE FROM packs WHERE name=?", (name,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                self._roll_back()
                self._start_anew(error)
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def _remove(path: Path) -> None:
    for name in (path.name, f"{path.name}-journal"):
        path.with_name(name).unlink(missing_ok=True)


def _is_about_the_file(error: sqlite3.DatabaseError) -> bool:
    """Not a mistake of ours: a broken file is the very base class, one that cannot be used an OperationalError."""
    return type(error) is sqlite3.DatabaseError or isinstance(error, sqlite3.OperationalError)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return "locked" in str(error)


def _open(path: Path | str) -> sqlite3.Connection:
    if isinstance(path, os.PathLike):
        # SQLite would make it 0644; whoever may write the packs, as the umask says, must be able to write it too
        with suppress(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o666))
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            _create(db, version)
    except BaseException:
        db.close()
        raise
    return db


def _create(db: sqlite3.Connection, version: int) -> None:
    db.execute("BEGIN IMMEDIATE")
    (now,) = db.execute("PRAGMA user_version").fetchone()
    if now == version:  # nobody was faster
        db.execute("DROP TABLE IF EXISTS objects")
        db.execute("DROP TABLE IF EXISTS packs")
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version={_VERSION}")
    db.execute("COMMIT")


def table_of_contents(path: Path) -> list[pack.Entry]:
    """A pack's footer; where that is damaged, the records that can be found without it."""
    descriptor = open_to_read(path)
    try:
        end = os.fstat(descriptor).st_size
        start = max(0, end - _TAIL)
        try:
            tail = read_at(descriptor, start, end - start)
            size = pack.footer_size(tail)
            if size > end:
                raise CorruptObjectError("a pack's footer is cut short")
            return pack.decode_footer(tail[-size:] if size <= len(tail) else read_at(descriptor, end - size, size))
        except CorruptObjectError:
            return list(pack.scan(partial(read_at, descriptor), end))
    finally:
        os.close(descriptor)
