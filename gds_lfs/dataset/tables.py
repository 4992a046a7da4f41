"""The tables of a dataset's database.

::

    dataset             _id, then one column for each field: the rows. A file's column holds its path, relative to
                        the dataset's folder. Users may read it, view it, index it and change it by hand.
    _datasets_meta      key, value: `format` (1) and `agreement` (the fingerprint of the code it agrees with)
    _datasets_fields    name, position, type, code, inputs: the fields as they are in the table (code and inputs, a
                        JSON list, for derived ones only)
    _datasets_ingests   name, code: what was ingested
    _datasets_files     field, id, oid, size, extension: the content of each file
    _datasets_derived   field, id, key: what each derived value was computed from

No time, no path of a machine and no order of events is recorded: the same code and rows give the same tables. Columns
have no constraints, so that a row can be inserted by hand with what is known of it; `_id` may stay NULL then.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from gds_lfs.dataset.fieldtype import FieldType, parse_spelling
from gds_lfs.dataset.identity import Cell, FileRef, content_key, derived_key, file_path, row_id
from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gds_lfs.dataset.declaration import Declaration, Field

FORMAT = "1"

_SCHEMA = (
    "CREATE TABLE dataset (_id TEXT PRIMARY KEY)",
    "CREATE TABLE _datasets_meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    (
        "CREATE TABLE _datasets_fields"
        " (name TEXT PRIMARY KEY, position INTEGER, type TEXT, code TEXT, inputs TEXT) WITHOUT ROWID"
    ),
    "CREATE TABLE _datasets_ingests (name TEXT PRIMARY KEY, code TEXT) WITHOUT ROWID",
    (
        "CREATE TABLE _datasets_files"
        " (field TEXT, id TEXT, oid BLOB, size INTEGER, extension TEXT, PRIMARY KEY (field, id)) WITHOUT ROWID"
    ),
    "CREATE TABLE _datasets_derived (field TEXT, id TEXT, key BLOB, PRIMARY KEY (field, id)) WITHOUT ROWID",
)


class Recorded(NamedTuple):
    """A field as the database has it."""

    name: str
    type: FieldType
    code: str | None
    inputs: tuple[str, ...]

    @property
    def derived(self) -> bool:
        return self.code is not None


class RecordedFile(NamedTuple):
    """A file that is recorded: in which cell, and what."""

    field: str
    row: str
    file: FileRef

    @property
    def path(self) -> str:
        return file_path(self.field, self.row, self.file.extension)


class Tables:
    """A connection's tables. Raises sqlite3.Error, which `database.connect` turns into the user's errors."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def exist(self) -> bool:
        """Whether the database is a dataset's; raises DatasetError for a version or a table that is not ours."""
        names = {name for (name,) in self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "_datasets_meta" not in names:
            if "dataset" in names:
                raise DatasetError(
                    "the database has a table `dataset` that git datasets did not make; rename that table, or name "
                    'another file: @dataset(sql_file="…")'
                )
            return False
        if self.meta("format") != FORMAT:
            raise DatasetError("the database was written by a newer version of git datasets; update it to go on")
        return True

    def create(self) -> None:
        for statement in _SCHEMA:
            self.connection.execute(statement)
        self.set_meta("format", FORMAT)

    def meta(self, key: str) -> str | None:
        row = self.connection.execute("SELECT value FROM _datasets_meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO _datasets_meta VALUES (?, ?)", (key, value))

    def fields(self) -> list[Recorded]:
        """The recorded fields; raises DatasetError for a type this version does not know."""
        found = []
        query = "SELECT name, type, code, inputs FROM _datasets_fields ORDER BY position"
        for name, spelling, code, inputs in self.connection.execute(query):
            try:
                kind = parse_spelling(spelling)
            except ValueError as error:
                raise DatasetError(f"{name}: {error}; a newer version of git datasets may") from None
            found.append(Recorded(name, kind, code, tuple(json.loads(inputs or "[]"))))
        return found

    def ingests(self) -> dict[str, str]:
        """The code of each recorded ingest, by name."""
        return dict(self.connection.execute("SELECT name, code FROM _datasets_ingests"))

    def record(self, declaration: Declaration, agreement: str) -> None:
        """Write down the declaration that the tables now agree with."""
        self._replace_changed(
            "_datasets_fields",
            [
                (
                    field.name,
                    position,
                    field.type.spelling,
                    field.code if field.derived else None,
                    json.dumps(field.inputs) if field.derived else None,
                )
                for position, field in enumerate(declaration.fields)
            ],
        )
        self._replace_changed("_datasets_ingests", [(ingest.name, ingest.code) for ingest in declaration.ingests])
        self.set_meta("agreement", agreement)

    def row_count(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM dataset").fetchone()[0])

    def count_gone(self, earlier: Path) -> int:
        """How many rows of an earlier version of these tables, in another file, are no more."""
        self.connection.execute("ATTACH ? AS earlier", (str(earlier),))
        query = (
            "SELECT count(*) FROM earlier.dataset WHERE _id NOT IN (SELECT _id FROM main.dataset WHERE _id NOT NULL)"
        )
        return int(self.connection.execute(query).fetchone()[0])

    def rows(
        self, fields: Sequence[tuple[str, FieldType]], ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, list[Cell]]]:
        """The id of each row and what it has in these fields; of the rows with these ids only (at most 500)."""
        columns, joins = ["d._id"], []
        for number, (name, kind) in enumerate(fields):
            if kind.is_file:
                joins.append(
                    f"LEFT JOIN _datasets_files f{number} ON f{number}.field = {_text(name)}"
                    f" AND f{number}.id = d._id AND d.{quoted(name)} IS NOT NULL"
                )
                columns += [f"f{number}.oid", f"f{number}.size", f"f{number}.extension"]
            else:
                columns.append(f"d.{quoted(name)}")
        where = f"WHERE d._id IN ({', '.join('?' * len(ids))})" if ids is not None else ""
        query = f"SELECT {', '.join(columns)} FROM dataset d {' '.join(joins)} {where} ORDER BY d._rowid_"
        kinds = [kind.is_file for _, kind in fields]
        for row in self.connection.execute(query, ids or ()):
            if isinstance(row[0], str):
                yield row[0], _cells(row, kinds)

    def insert(self, identity: str, cells: Sequence[tuple[str, Cell]]) -> None:
        """Add a row."""
        names = ", ".join(quoted(name) for name, _ in cells)
        marks = ", ?" * len(cells)
        values = [self._recorded(name, identity, cell) for name, cell in cells]
        self.connection.execute(f"INSERT INTO dataset (_id, {names}) VALUES (?{marks})", (identity, *values))

    def update(self, identity: str, cells: Sequence[tuple[str, Cell]]) -> None:
        """Change cells of a row."""
        changes = ", ".join(f"{quoted(name)} = ?" for name, _ in cells)
        values = [self._recorded(name, identity, cell) for name, cell in cells]
        self.connection.execute(f"UPDATE dataset SET {changes} WHERE _id = ?", (*values, identity))

    def file(self, field: str, identity: str) -> RecordedFile | None:
        """The recorded file of a cell."""
        query = "SELECT oid, size, extension FROM _datasets_files WHERE field = ? AND id = ?"
        row = self.connection.execute(query, (field, identity)).fetchone()
        return None if row is None else RecordedFile(field, identity, FileRef(*row))

    def files(self) -> Iterator[RecordedFile]:
        """All recorded files."""
        for field, identity, *file in self.connection.execute("SELECT * FROM _datasets_files"):
            yield RecordedFile(field, identity, FileRef(*file))

    def orphans(self) -> Iterator[RecordedFile]:
        """The recorded files whose row is gone, or names another file, or none."""
        for field in self.fields():
            if field.type.is_file:
                column = quoted(field.name)
                query = (
                    f"SELECT f.*, d.{column} FROM _datasets_files f LEFT JOIN dataset d ON d._id = f.id"
                    f" WHERE f.field = ?"
                )
                for name, identity, oid, size, extension, path in self.connection.execute(query, (field.name,)):
                    found = RecordedFile(name, identity, FileRef(oid, size, extension))
                    if path != found.path:
                        yield found

    def forget_files(self, files: Iterable[RecordedFile]) -> None:
        keys = [(file.field, file.row) for file in files]
        self.connection.executemany("DELETE FROM _datasets_files WHERE field = ? AND id = ?", keys)

    def unnamed(self) -> list[int]:
        """The rows without a proper id, as a user may have inserted them: their row numbers."""
        query = "SELECT _rowid_ FROM dataset WHERE _id IS NULL OR typeof(_id) != 'text' ORDER BY _rowid_"
        return [number for (number,) in self.connection.execute(query)]

    def empty_cells(self, field: str) -> int:
        """In how many rows the field has no value."""
        query = f"SELECT count(*) FROM dataset WHERE {quoted(field)} IS NULL"
        return int(self.connection.execute(query).fetchone()[0])

    def foreign_files(self, field: str) -> int:
        """In how many rows a file's field names a file that is not recorded: a user wrote its path there."""
        column = quoted(field)
        query = (
            f"SELECT count(*) FROM dataset d LEFT JOIN _datasets_files f ON f.field = ? AND f.id = d._id"
            f" WHERE d.{column} IS NOT NULL AND f.id IS NULL"
        )
        return int(self.connection.execute(query, (field,)).fetchone()[0])

    def name_row(self, number: int, stored: Sequence[Field]) -> None:
        """Give a row without an id one, and the defaults for what it lacks."""
        for field in stored:
            if field.default is not None and not field.type.optional:
                column = quoted(field.name)
                change = f"UPDATE dataset SET {column} = ? WHERE _rowid_ = ? AND {column} IS NULL"
                self.connection.execute(change, (field.default, number))
        columns = ", ".join(quoted(field.name) for field in stored)
        row = self.connection.execute(f"SELECT {columns} FROM dataset WHERE _rowid_ = ?", (number,)).fetchone()
        cells = list(zip((field.name for field in stored), row, strict=True))
        copy = 0
        while True:
            # A user may well insert the same row twice: then they are two rows.
            identity = row_id(content_key([*cells, ("_copy", copy)] if copy else cells))
            taken = self.connection.execute("SELECT 1 FROM dataset WHERE _id = ?", (identity,)).fetchone()
            if taken is None:
                break
            copy += 1
        self.connection.execute("UPDATE dataset SET _id = ? WHERE _rowid_ = ?", (identity, number))

    def stale(self, field: Recorded | Field, types: dict[str, FieldType]) -> Iterator[tuple[str, bytes, bool]]:
        """The rows whose value of a derived field was computed from something else: id, new key, any NULL input.

        An input that is NULL although its type has no None is not there yet, and neither is the value then.
        """
        recorded: dict[str, bytes] = dict(
            self.connection.execute("SELECT id, key FROM _datasets_derived WHERE field = ?", (field.name,))
        )
        spelling, code = field.type.spelling, field.code or ""
        optional = [types[name].optional for name in field.inputs]
        for identity, cells in self.rows([(name, types[name]) for name in field.inputs]):
            key = derived_key(spelling, code, cells)
            if recorded.get(identity) != key:
                yield identity, key, any(cell is None and not may for cell, may in zip(cells, optional, strict=True))

    def set_derived(self, field: str, identity: str, key: bytes) -> None:
        self.connection.execute("INSERT OR REPLACE INTO _datasets_derived VALUES (?, ?, ?)", (field, identity, key))

    def drop_rows(self, ids: Iterable[str]) -> None:
        """Take rows out of the table; what is recorded of them stays."""
        self.connection.executemany("DELETE FROM dataset WHERE _id = ?", ((identity,) for identity in ids))

    def forget_rows(self) -> None:
        """Drop the keys of rows that are gone."""
        there = "SELECT _id FROM dataset WHERE _id IS NOT NULL"
        self.connection.execute(f"DELETE FROM _datasets_derived WHERE id NOT IN ({there})")

    def _recorded(self, field: str, identity: str, cell: Cell) -> Any:
        """The value for the column; a file is recorded with its content."""
        if not isinstance(cell, FileRef):
            return cell
        statement = "INSERT OR REPLACE INTO _datasets_files VALUES (?, ?, ?, ?, ?)"
        self.connection.execute(statement, (field, identity, *cell))
        return file_path(field, identity, cell.extension)

    def _replace_changed(self, table: str, wanted: list[tuple[Any, ...]]) -> None:
        # Rows that stay as they are are not written again: the pages of the file stay as they are.
        found = set(self.connection.execute(f"SELECT * FROM {table}"))
        gone = [(row[0],) for row in found - set(wanted)]
        self.connection.executemany(f"DELETE FROM {table} WHERE name = ?", gone)
        for row in wanted:
            if row not in found:
                self.connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _cells(row: Sequence[Any], are_files: Sequence[bool]) -> list[Cell]:
    cells: list[Cell] = []
    at = 1
    for is_file in are_files:
        if is_file:
            cells.append(FileRef(row[at], row[at + 1], row[at + 2]) if row[at] is not None else None)
            at += 3
        else:
            cells.append(row[at])
            at += 1
    return cells
