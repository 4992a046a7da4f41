"""A dataset's `index.py` as a program to be parsed: its fields, its functions, its rows.

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gds_lfs.dataset.failure import lines_of
from gds_lfs.dataset.handlers import Handler, read_handlers
from gds_lfs.dataset.parse.program import (
    FIELD,
    FIELDS,
    HANDLERS,
    INGEST,
    PREPROCESS,
    TRANSFORM,
    Function,
    ProgramError,
    Split,
)
from gds_lfs.dataset.parse.rows import Row, Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from gds_lfs.dataset.declaration import Declaration

EVERYTHING = "all"
"""The name of the one split of a dataset without preprocess."""

_TELLING = {"int", "float", "str", "bool", "bytes", "list", "dict", "tuple"}


class OwnProgram:
    """`declare` gives the declaration and the class, executing `index.py` the first time; `open_rows` the rows."""

    def __init__(
        self, entry: str, source: str, declare: Callable[[], tuple[Declaration, type]], open_rows: Callable[[], Rows]
    ) -> None:
        self._entry = entry
        self._source = source
        self._declare = declare
        self._open_rows = open_rows
        self._handlers: dict[tuple[str, str], Handler] = {}

    def load(self) -> list[Function]:
        """Raises DeclarationError, and whatever the user's code raises."""
        declaration, cls = self._declare()
        lines = lines_of(self._source)
        found = []
        for field in declaration.fields:
            kind = TRANSFORM if field.derived else FIELD
            found.append(Function(kind, field.name, self._where(lines, field.name), field.type.spelling))
        found += [Function(INGEST, ingest.name, self._where(lines, ingest.name)) for ingest in declaration.ingests]
        for handler in read_handlers(cls, [field.name for field in declaration.fields]):
            self._handlers[handler.kind, handler.name] = handler
            where = self._where(lines, inspect.unwrap(handler.function).__name__)
            found.append(Function(handler.kind, handler.name, where, _declared(handler.function)))
        if not any(function.kind in HANDLERS for function in found):
            for function in found:
                if function.kind in FIELDS:  # there is nothing else to read
                    key = (function.kind, function.name)
                    self._handlers[key] = Handler(*key, _Read(function.name))
        return found

    def splits(self) -> list[Split]:
        """Raises ProgramError for a result that is no splits, and whatever the user's code raises."""
        rows = self._open_rows()
        preprocess = next((each for each in self._handlers.values() if each.kind == PREPROCESS), None)
        if preprocess is None:
            return [Split(EVERYTHING, rows)]
        result = preprocess.function(rows)
        where = self._where(lines_of(self._source), preprocess.name)
        if not isinstance(result, Mapping) or not result:
            what = "an empty dict" if isinstance(result, Mapping) else _name(result)
            raise _wrong(f"{preprocess.name} returned {what}; it returns the splits by name", where)
        return [Split(str(name), _checked(name, part, where)) for name, part in result.items()]

    def value(self, function: Function, split: Split, position: int) -> object:
        """Raises whatever the user's code raises."""
        return self._handlers[function.kind, function.name].function(split.ids[position])

    def verify(self) -> None:
        """The values of an `index.py` show everything."""

    def notes(self) -> list[str]:
        return []

    def _where(self, lines: dict[str, int], name: str) -> str:
        return f"{self._entry}:{lines[name]}" if name in lines else self._entry


class _Read:
    """Reads one field of a row."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, row: Row) -> Any:
        return row[self._name]


def _checked(name: object, part: Any, where: str) -> Sequence[object]:
    if isinstance(part, (str, bytes)) or not isinstance(part, Iterable):
        raise _wrong(f"the split {name!r} is {_name(part)}; it is a sequence of rows", where)
    rows = part if isinstance(part, Rows) else list(part)
    for position, row in enumerate(rows if not isinstance(rows, Rows) else ()):
        if not isinstance(row, Row):
            raise _wrong(
                f"the split {name!r} holds {_name(row)} at {position}; it holds rows, as they were given", where
            )
    return rows


def _wrong(text: str, where: str) -> ProgramError:
    advice = 'return a dict of parts of the rows, such as {"training": rows[:800], "validation": rows[800:]}'
    return ProgramError(text, "preprocess_result", where, advice)


def _declared(function: Callable[..., object]) -> str:
    """The type in a handler's annotation, where it is one that a value can be compared with."""
    annotation = getattr(inspect.unwrap(function), "__annotations__", {}).get("return", "")
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name if name in _TELLING else ""


def _name(value: object) -> str:
    return "None" if value is None else type(value).__name__
