"""The file of a dataset's database: opening it, copying it, and reading its state.

A database that others write at the same time, one that is broken and one that is no SQLite database at all are told
apart, each with its own error. Nothing here changes the database in the work tree, apart from `checkpoint`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content.chunker import SQLITE_HEADER
from gds_lfs.dataset.tables import Tables
from gds_lfs.errors import DatasetError, LockedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.dataset.tables import Recorded

_WAIT = 5.0
_HEADER_SIZE = 100
_ROLLBACK_MODE = 1  # https://sqlite.org/fileformat2.html: the file format write version


class RowFile(NamedTuple):
    """A file that a row names: its path relative to the dataset's folder, and what it holds."""

    path: str
    oid: Oid
    size: int


@dataclass(frozen=True)
class State:
    """What a database holds, as far as a plan needs to know."""

    agreement: str | None = None
    """The fingerprint of the code it agrees with (`fingerprint.agreement`); None for a database to be made."""
    fields: tuple[Recorded, ...] = ()
    ingests: dict[str, str] = field(default_factory=dict)
    """The code of each ingest that has run, by name."""
    rows: int = 0
    unnamed: int = 0
    """Rows inserted by hand that have no id yet."""
    stale: dict[str, int] = field(default_factory=dict)
    """For derived fields, the rows whose inputs were changed or inserted by hand."""
    orphans: tuple[str, ...] = ()
    """The files of rows that were deleted by hand."""


def read_state(path: Path | None) -> State:
    """The state of a database; that of None or an absent file is empty.

    Raises DatasetError when it is broken or not a dataset's, LockedError when someone keeps it locked.
    """
    if path is None or not path.exists():
        return State()
    with connect(path) as tables:
        if not tables.exist():
            return State()
        fields = tuple(tables.fields())
        types = {recorded.name: recorded.type for recorded in fields}
        stale = {
            recorded.name: sum(1 for _ in tables.stale(recorded, types)) for recorded in fields if recorded.derived
        }
        return State(
            tables.meta("agreement"),
            fields,
            tables.ingests(),
            tables.row_count(),
            len(tables.unnamed()),
            {name: count for name, count in stale.items() if count},
            tuple(file.path for file in tables.orphans()),
        )


def read_agreement(path: Path | None) -> str | None:
    """The fingerprint of the code that the database agrees with: what `read_state` says, without looking at rows."""
    if path is None or not path.exists():
        return None
    with connect(path) as tables:
        return tables.meta("agreement") if tables.exist() else None


def read_file_fields(path: Path | None) -> list[str]:
    """The names of the fields that have a folder. Raises like `read_state`."""
    if path is None or not path.exists():
        return []
    with connect(path) as tables:
        return [recorded.name for recorded in tables.fields() if recorded.type.is_file] if tables.exist() else []


def count_rows(path: Path) -> int:
    """How many rows a dataset's database has. Raises like `read_state`."""
    with connect(path) as tables:
        return tables.row_count()


def count_gone(earlier: Path, path: Path) -> int:
    """How many rows of an earlier database a dataset's database has no more. Raises like `read_state`."""
    if read_agreement(earlier) is None:
        return 0
    with connect(path) as tables:
        return tables.count_gone(earlier)


def files(path: Path | None, *, orphans: bool = False) -> Iterator[RowFile]:
    """All files that the rows of a database name; with `orphans` also those of rows that were deleted by hand.

    Raises like `read_state`.
    """
    if path is None or not path.exists():
        return
    with connect(path) as tables:
        if tables.exist():
            left_out = set() if orphans else {(file.field, file.row) for file in tables.orphans()}
            for file in tables.files():
                if (file.field, file.row) not in left_out:
                    yield RowFile(file.path, file.file.oid, file.file.size)


def checkpoint(path: Path, wait: float = _WAIT) -> bool:
    """Fold what stands beside a database (`-wal`, or a `-journal` to be rolled back) into it; whether there was any.

    Raises LockedError when another program keeps it from that for `wait` seconds, DatasetError when it is broken.
    """
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    if not path.exists() or not any(each.exists() and each.stat().st_size for each in beside):
        return False
    with connect(path, wait) as tables:
        tables.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        busy, _, _ = tables.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise LockedError(_locked(path))
    return True


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other programs from writing a database in rollback mode; all else is left alone, since one in WAL mode that
    nobody has open would be opened by this. Raises LockedError when one is writing.
    """
    head = b""
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(_HEADER_SIZE)
    if not head.startswith(SQLITE_HEADER) or head[18] != _ROLLBACK_MODE:
        yield
        return
    with connect(path) as tables:
        tables.connection.execute("BEGIN IMMEDIATE")
        yield


def verify(path: Path) -> None:
    """Raise DatasetError when the database's pages or indexes are broken."""
    with connect(path) as tables:
        found = tables.connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise DatasetError(_broken(path, " ".join(str(found).split())))


def copy(source: Path, target: Path) -> None:
    """Copy a database page by page, as of one moment. Raises like `read_state`."""
    with connect(source) as tables, contextlib.closing(sqlite3.connect(target)) as copied:
        # One that was opened and kept locked would make the copy wait without end.
        tables.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        tables.connection.backup(copied)


@contextlib.contextmanager
def connect(path: Path, wait: float = _WAIT, *, original: Path | None = None) -> Iterator[Tables]:
    """The tables of the database in a file, which is made when absent. SQLite's errors become the user's, and name
    the `original` where the file is our copy of one.

    Transactions are the caller's own. Raises LockedError after `wait` seconds of waiting for someone else.
    """
    _refuse_broken_header(path)
    shown = original or path
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=wait, isolation_level=None)
        yield Tables(connection)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise LockedError(_locked(shown)) from None
        if "unable to open" in str(error) or "full" in str(error) or "I/O" in str(error):
            raise DatasetError(f"{shown}: {error}") from None
        raise DatasetError(
            f"{shown}: {error}; if its tables were changed by hand, take back the last good version: "
            f"git checkout HEAD -- {shown}"
        ) from None
    except sqlite3.DatabaseError as error:
        raise DatasetError(_broken(shown, str(error))) from None
    finally:
        if connection is not None:
            connection.close()


def _refuse_broken_header(path: Path) -> None:
    """Find what is cheap to find: a file that is no database, and one that lost its end."""
    if not path.exists():
        return
    with path.open("rb") as file:
        header = file.read(_HEADER_SIZE)
    if not header:
        return  # SQLite takes an empty file for an empty database
    if header[:16] != SQLITE_HEADER or len(header) < _HEADER_SIZE:
        raise DatasetError(_broken(path, "it is not an SQLite database"))
    page_size = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    counter_is_valid = header[24:28] == header[92:96]
    has_wal = path.with_name(path.name + "-wal").exists()
    if counter_is_valid and not has_wal and path.stat().st_size < pages * (65536 if page_size == 1 else page_size):
        raise DatasetError(_broken(path, "its end is missing"))


def _locked(path: Path) -> str:
    return f"{path} is in use by another program; close it (or end its transaction) and try again"


def _broken(path: Path, what: str) -> str:
    return f"{path} is broken ({what}); take back its last good version: git checkout HEAD -- {path}"
