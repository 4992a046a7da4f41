"""The rows of a dataset as a sequence, for the functions that prepare them: read from its database when looked at.

A row has the fields as attributes and as items: `row.image`, `row["label"]`; unless a field is called so, `row.id` is
what the row is called in the database. A file's field is a `File` with the path of a file on this machine, which is
asked for when the field is read.

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from gds_lfs.dataset.declaration import Field


class NotFetchedError(FileNotFoundError):
    """A row's file whose data is not on this machine."""


class Table:
    """The database behind the rows. `locate` gives the path of a file by its path in the dataset's folder."""

    def __init__(self, database: str, fields: Sequence[Field], locate: Callable[[str], str]) -> None:
        self.fields = {field.name: field.type for field in fields}
        self._database = database
        self._locate = locate
        self._connections = threading.local()

    def numbers(self) -> array[int]:
        """The numbers of all rows, in order."""
        query = "SELECT _rowid_ FROM dataset WHERE typeof(_id) = 'text' ORDER BY _rowid_"
        return array("q", (number for (number,) in self._connect().execute(query)))

    def read(self, number: int) -> dict[str, Any]:
        """The stored values of one row, and its `_id`."""
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in ("_id", *self.fields))
        values = self._connect().execute(f"SELECT {columns} FROM dataset WHERE _rowid_ = ?", (number,)).fetchone()
        return dict(zip(("_id", *self.fields), values, strict=True))

    def value(self, name: str, stored: Any) -> Any:
        """What user code sees for a stored value."""
        kind = self.fields[name]
        if not kind.is_file or stored is None:
            return kind.to_python(stored) if not kind.is_file else None
        from gds_lfs.dataset.kinds import recognise
        from gds_lfs.dataset.schema import File
        from gds_lfs.dataset.spool import head

        path = self._locate(stored)
        found = recognise(head(path), os.path.splitext(path)[1][1:], kind.kinds)
        return File(path, found.name if found else None)

    def _connect(self) -> sqlite3.Connection:
        # One for each thread, and for each process that user code forks.
        known = getattr(self._connections, "of", None)
        if known is None or known[0] != os.getpid():
            connection = sqlite3.connect(f"{_uri(self._database)}?mode=ro", uri=True)
            known = self._connections.of = (os.getpid(), connection)
        found: sqlite3.Connection = known[1]
        return found


class Row:
    """One row."""

    __slots__ = ("_number", "_stored", "_table")

    def __init__(self, table: Table, number: int) -> None:
        self._table = table
        self._number = number
        self._stored: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        if name not in self._table.fields:
            raise KeyError(f"{name!r} is no field of the dataset; those are {', '.join(self._table.fields)}")
        return self._table.value(name, self._values()[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # no field's name; a copy that is being made has nothing yet
            raise AttributeError(name)
        if name in self._table.fields:  # before all else: a field may have any name
            return self[name]
        if name == "id":
            return self._row_id()
        if name == "keys":  # so that dict(row) works
            return lambda: list(self._table.fields)
        raise AttributeError(f"{name!r} is no field of the dataset; those are {', '.join(self._table.fields)}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and (self._table, self._number) == (other._table, other._number)

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return f"Row({self._row_id()!r})"

    def _row_id(self) -> str:
        return str(self._values()["_id"])

    def _values(self) -> dict[str, Any]:
        if self._stored is None:
            self._stored = self._table.read(self._number)
        return self._stored


class Rows(Sequence[Row]):
    """Rows in an order; a slice of them is one as well, and nothing is read for it."""

    def __init__(self, table: Table, numbers: array[int] | None = None) -> None:
        self._table = table
        self.numbers = table.numbers() if numbers is None else numbers
        """What tells the rows from each other."""

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> Row | Rows:
        if isinstance(index, slice):
            return Rows(self._table, self.numbers[index])
        try:
            return Row(self._table, self.numbers[index])
        except IndexError:
            raise IndexError(f"row {index} of {len(self)}") from None

    def __iter__(self) -> Iterator[Row]:
        return (Row(self._table, number) for number in self.numbers)

    def __add__(self, other: Rows) -> Rows:
        if not isinstance(other, Rows):
            return NotImplemented
        return Rows(self._table, self.numbers + other.numbers)

    def __repr__(self) -> str:
        return f"<{len(self)} rows>"


def _uri(path: str) -> str:
    from pathlib import Path

    return Path(os.path.abspath(path)).as_uri()
