"""A new version of a dataset while it is being made: its database, and which files are to come and to go."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content.hashing import Oid, oid_of, oid_of_file
from gds_lfs.dataset.identity import Cell, FileRef, file_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gds_lfs.dataset.declaration import Declaration
    from gds_lfs.dataset.fieldtype import FieldType
    from gds_lfs.dataset.sandbox import Value
    from gds_lfs.dataset.tables import RecordedFile, Tables

_READ_AT_ONCE = 1 << 20


class Placement(NamedTuple):
    """A file that is to be put at `path` (relative to the dataset's folder), and where its content is now."""

    path: str
    source: Path
    oid: Oid
    size: int


Watch = Callable[[str, int], Callable[[], object]]
"""Told what begins and how many rows that is (0: nobody knows), gives what to call at each of them."""


class Draft:
    """The tables of the copy, and the files. Nothing is done to any file but those of the spool."""

    def __init__(
        self, tables: Tables, declaration: Declaration, materialise: Callable[[str, Oid], Path], watch: Watch
    ) -> None:
        self.tables = tables
        self.declaration = declaration
        self.watch = watch
        self.dropped_rows = 0
        self._materialise = materialise
        self._placed: dict[str, Placement] = {}
        self._removed: set[str] = set()

    @property
    def types(self) -> dict[str, FieldType]:
        """The type of each declared field."""
        return {field.name: field.type for field in self.declaration.fields}

    def placements(self) -> list[Placement]:
        return list(self._placed.values())

    def removals(self) -> list[str]:
        return sorted(self._removed - self._placed.keys())

    def drop_orphans(self) -> None:
        """Let go of what belongs to rows that are gone."""
        self.drop_files(list(self.tables.orphans()))
        self.tables.forget_rows()

    def drop_files(self, files: Sequence[RecordedFile]) -> None:
        """Let go of these files."""
        self.tables.forget_files(files)
        for file in files:
            self._removed.add(file.path)
            self._placed.pop(file.path, None)

    def drop_rows(self, ids: Sequence[str]) -> None:
        """Take rows out of a draft that is for a look alone."""
        self.tables.drop_rows(ids)
        self.dropped_rows += len(ids)

    def cell(self, value: Value) -> Cell:
        """What a value from the child is in the tables: a file of the spool by what it holds."""
        return _read(value) if isinstance(value, Path) else value

    def place(self, field: str, row: str, file: FileRef, source: Path) -> None:
        """Let a file of the spool become a row's file."""
        path = file_path(field, row, file.extension)
        self._placed[path] = Placement(path, source, file.oid, file.size)

    def readable(self, field: str, row: str, cell: Cell) -> Value:
        """The cell as the child takes it: a file as the path of one with its content."""
        if not isinstance(cell, FileRef):
            return cell
        path = file_path(field, row, cell.extension)
        placed = self._placed.get(path)
        return placed.source if placed is not None else self._materialise(path, cell.oid)


def discard(value: Value) -> None:
    """Remove a file of the spool that is not needed."""
    if isinstance(value, Path):
        value.unlink()


def _read(path: Path) -> FileRef:
    name = os.fspath(path)
    handle = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(handle).st_size
        # One read of the exact size: most files are small, and a buffer costs more than they do.
        data = os.read(handle, size) if size <= _READ_AT_ONCE else None
    finally:
        os.close(handle)
    oid = oid_of(data) if data is not None and len(data) == size else oid_of_file(name)
    return FileRef(oid, size, name.rpartition(".")[2])
