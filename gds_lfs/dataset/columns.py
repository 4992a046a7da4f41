"""Columns that come, go and change in place: the rest of the database's pages stay as they are.

What a user made on top of the table (views, indexes, triggers, other tables' references) is never lost: a column that
one of them uses is not dropped, and the error names them all.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING

from gds_lfs.dataset.tables import quoted
from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gds_lfs.dataset.declaration import Field
    from gds_lfs.dataset.draft import Draft
    from gds_lfs.dataset.reconcile import Retype

_USER = re.compile(r"error in (view|index|trigger|table) (.*?)(?: after drop column)?: ", re.DOTALL)
_OLDEST_SQLITE = (3, 35)


def change(draft: Draft, drop: Iterable[str], add: Sequence[Field], retype: Iterable[Retype]) -> None:
    """Drop, add and change columns, in that order. Raises DatasetError naming what stands in the way."""
    for name in drop:
        _drop(draft, name)
    for field in add:
        _add(draft.tables.connection, field)
    for each in retype:
        if each.old.sql != each.new.sql:
            _convert(draft.tables.connection, each)


def fill_defaults(connection: sqlite3.Connection, fields: Iterable[Field]) -> None:
    """Give rows without a value the default of a field that must have one, also where it was declared after them."""
    for field in fields:
        if field.default is not None and not field.type.optional:
            name = quoted(field.name)
            connection.execute(f"UPDATE dataset SET {name} = ? WHERE {name} IS NULL", (field.default,))


def _drop(draft: Draft, name: str) -> None:
    connection = draft.tables.connection
    draft.drop_files([file for file in draft.tables.files() if file.field == name])
    connection.execute("DELETE FROM _datasets_derived WHERE field = ?", (name,))
    _drop_column(connection, name, "dropped")


def _drop_column(connection: sqlite3.Connection, name: str, what: str) -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise DatasetError(f"dropping {name} takes SQLite 3.35; this Python has {sqlite3.sqlite_version}")
    users = _references(connection, name)
    connection.execute("SAVEPOINT dropping")
    while True:
        try:
            connection.execute(f"ALTER TABLE dataset DROP COLUMN {quoted(name)}")
            break
        except sqlite3.OperationalError as error:
            # SQLite names one user at a time: set it aside to see the next. All of it is undone below.
            found = _USER.match(str(error))
            if found is None or found[1] == "table":
                users.append(str(error))
                break
            users.append(f"{found[1]} {found[2]}")
            connection.execute(f"DROP {found[1]} {quoted(found[2])}")
    if users:
        connection.execute("ROLLBACK TO dropping")
        raise DatasetError(f"{name} cannot be {what}, it is used by {', '.join(users)}; drop or change that first")
    connection.execute("RELEASE dropping")


def _references(connection: sqlite3.Connection, name: str) -> list[str]:
    """The tables that refer to the column with a foreign key, which SQLite itself does not look for."""
    query = (
        "SELECT DISTINCT m.name FROM sqlite_master m, pragma_foreign_key_list(m.name) f"
        " WHERE m.type = 'table' AND f.\"table\" = 'dataset' COLLATE NOCASE AND f.\"to\" = ? COLLATE NOCASE ORDER BY 1"
    )
    return [f"table {table}" for (table,) in connection.execute(query, (name,))]


def _add(connection: sqlite3.Connection, field: Field) -> None:
    there = {name.lower() for _, name, *_ in connection.execute("PRAGMA table_info(dataset)")}
    if field.name.lower() in there:
        raise DatasetError(
            f"{field.name}: the table has a column of this name that was made by hand; rename or drop that one first"
        )
    connection.execute(f"ALTER TABLE dataset ADD COLUMN {quoted(field.name)} {field.type.sql}")
    if field.default is not None and field.type.optional:
        # Not a DEFAULT of the column: the one in index.py may change later, that one could not.
        connection.execute(f"UPDATE dataset SET {quoted(field.name)} = ?", (field.default,))


def _convert(connection: sqlite3.Connection, each: Retype) -> None:
    """Give a column another SQL type by way of a new one, since SQLite cannot change it in place."""
    old, new = quoted(each.name), quoted(f"_new_{each.name}")
    connection.execute(f"ALTER TABLE dataset ADD COLUMN {new} {each.new.sql}")
    connection.execute(f"UPDATE dataset SET {new} = {old}")
    _drop_column(connection, each.name, "changed")
    connection.execute(f"ALTER TABLE dataset RENAME COLUMN {new} TO {old}")
