"""Ingesting: the rows that an ingest brings, and which of them the dataset has already.

A row is there already when a row has the same content in all stored fields, or has the id that the content gives (then
a user changed that row by hand, and it stays as they want it). Rows that have no value for a field yet, because the
field is new, are completed: a row that brings one and is otherwise equal becomes that row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.dataset.draft import discard
from gds_lfs.dataset.identity import Cell, FileRef, content_key, row_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from gds_lfs.dataset.declaration import Field
    from gds_lfs.dataset.draft import Draft
    from gds_lfs.dataset.sandbox import Sandbox, Value


class Counts(NamedTuple):
    """How many rows were added, and how many that were there were completed."""

    added: int
    completed: int


def run(
    names: Iterable[str], draft: Draft, sandbox: Sandbox, new_fields: Sequence[str], limit: int | None = None
) -> Counts:
    """Run ingests, and take `limit` rows of each, at most. `new_fields` are those that no row had before.

    Raises DatasetError.
    """
    fields = draft.declaration.stored
    known = KnownRows(fields, new_fields)
    for identity, cells in draft.tables.rows([(field.name, field.type) for field in fields]):
        known.add(identity, cells)
    added = completed = 0
    for name in names:
        step = draft.watch(f"Running {name}", 0)
        for values in sandbox.ingest(name, limit):
            step()
            cells = [draft.cell(value) for value in values]
            match = known.match(cells)
            if match is None:
                _discard_all(values)
            elif match.is_new:
                added += 1
                draft.tables.insert(match.identity, _named(fields, cells))
                _place_all(draft, match, fields, cells, values)
            else:
                completed += 1
                draft.tables.update(match.identity, _named(fields, cells, match.fields))
                _place_all(draft, match, fields, cells, values)
    return Counts(added, completed)


class Match(NamedTuple):
    """The row that gets values, and in which fields."""

    identity: str
    is_new: bool
    fields: frozenset[str]


class KnownRows:
    """The rows that are there, by their content, and by what they have of it when they lack some."""

    def __init__(self, fields: Sequence[Field], new_fields: Sequence[str]) -> None:
        self._fields = fields
        self._all = frozenset(field.name for field in fields)
        self._required = {field.name for field in fields if not field.type.optional}
        self._new = set(new_fields)
        self._ids: set[str] = set()
        self._by_content: dict[bytes, str] = {}
        self._lacking: dict[frozenset[str], dict[bytes, list[tuple[str, bytes]]]] = {}
        self._matched: set[str] = set()

    def add(self, identity: str, cells: Sequence[Cell]) -> None:
        """Count a row as there."""
        named = _named(self._fields, cells)
        key = content_key(named)
        self._ids.add(identity)
        self._by_content[key] = identity
        missing = frozenset(
            name for name, cell in named if name in self._new or (cell is None and name in self._required)
        )
        if missing and missing != self._all:
            part = content_key(pair for pair in named if pair[0] not in missing)
            self._lacking.setdefault(missing, {}).setdefault(part, []).append((identity, key))

    def match(self, cells: Sequence[Cell]) -> Match | None:
        """The row that the content is to become, which counts as there from now on; None when it is there already."""
        named = _named(self._fields, cells)
        key = content_key(named)
        identity = row_id(key)
        there = self._by_content.get(key)
        if there is not None:
            self._matched.add(there)
            return None
        for missing, parts in self._lacking.items():
            part = content_key(pair for pair in named if pair[0] not in missing)
            for candidate, old_key in parts.get(part, ()):
                if candidate not in self._matched:
                    self._matched.add(candidate)
                    self._by_content.pop(old_key, None)
                    self._by_content[key] = candidate
                    return Match(candidate, False, missing)
        if identity in self._ids:
            return None
        self._ids.add(identity)
        self._by_content[key] = identity
        return Match(identity, True, self._all)


def _named(
    fields: Sequence[Field], cells: Sequence[Cell], names: frozenset[str] | None = None
) -> list[tuple[str, Cell]]:
    return [
        (field.name, cell) for field, cell in zip(fields, cells, strict=True) if names is None or field.name in names
    ]


def _place_all(
    draft: Draft, match: Match, fields: Sequence[Field], cells: Sequence[Cell], values: Sequence[Value]
) -> None:
    for field, cell, value in zip(fields, cells, values, strict=True):
        if isinstance(cell, FileRef) and field.name in match.fields:
            source: Path = value  # type: ignore[assignment]  # a file's value is its path
            draft.place(field.name, match.identity, cell, source)
        else:
            discard(value)


def _discard_all(values: Sequence[Value]) -> None:
    for value in values:
        discard(value)
