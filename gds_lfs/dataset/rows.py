"""From what an ingest returns to rows: one list of raw values for each, in the order of the stored fields.

Accepted, for a dataset with the stored fields `image` and `label`:

- a tuple of columns, `return images, labels` (a column is a list or anything else that can be iterated; None stands
  for a column of defaults; columns at the end whose fields have defaults may be left out);
- a dict of columns by name; where only the first stored field needs a value, its bare column;
- rows, in a list or from a generator: dicts by name, or tuples in the order of the fields.

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gds_lfs.dataset.declaration import Field


class ReturnError(Exception):
    """An ingest or a transform gave something that its fields cannot take; the message says what."""


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()
"""Stands for a value that a row does not bring: the field's default is taken."""


def shape(result: object, fields: Sequence[Field]) -> Iterator[list[Any]]:
    """The rows in what an ingest returned; raises ReturnError, for a fault in a row when that row is reached."""
    if result is None:
        raise ReturnError(f"returned None; it should return {_example(fields)}")
    if isinstance(result, Mapping):
        return _columns(_by_name(result, fields), fields)
    if isinstance(result, tuple) and not _all(result, Mapping):
        if len(fields) == 1 and not _all(result, _COLUMN) and not _is_one_column(result):
            return _rows(result, fields)
        return _columns(_in_order(result, fields), fields)
    if not isinstance(result, Iterable) or _is_value(result):
        raise ReturnError(f"returned {type(result).__name__}; it should return {_example(fields)}")
    if isinstance(result, list) and 1 < len(result) == len(fields) and _all(result, list):
        raise ReturnError(f"returned a list of lists: rows or columns? Return the columns as {_example(fields)}")
    return _rows(result, fields)


_COLUMN = (list, tuple, Iterator, range, set, frozenset)


def _columns(columns: list[Iterable[Any] | None], fields: Sequence[Field]) -> Iterator[list[Any]]:
    """Step through all columns together; raises ReturnError where one ends before another."""
    given = [(field, column) for field, column in zip(fields, columns, strict=True) if column is not None]
    if not given:
        raise ReturnError("returned no column with values")
    lengths = {field.name: len(column) for field, column in given if isinstance(column, Sized)}
    if len(set(lengths.values())) > 1:
        spelled = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ReturnError(f"returned columns of different lengths: {spelled}")
    iterators = [iter(column) if column is not None else repeat(MISSING) for column in columns]
    while True:
        row = [next(iterator, _END) for iterator in iterators]
        ended = [field.name for field, value in zip(fields, row, strict=True) if value is _END]
        if len(ended) == len(given):
            return
        if ended:
            raise ReturnError(f"returned columns of different lengths: {ended[0]} ends first")
        yield row


_END = object()


def _in_order(result: tuple[Any, ...], fields: Sequence[Field]) -> list[Iterable[Any] | None]:
    names = ", ".join(field.name for field in fields)
    missing = fields[len(result) :]
    required = [field.name for field in fields if field.required]
    if any(field.required for field in missing) and len(result) == len(required):
        return _by_name(dict(zip(required, result, strict=True)), fields)  # fields with defaults stand among them
    if len(result) > len(fields) or any(field.required for field in missing):
        raise ReturnError(f"returned {_count(len(result), 'column')}; the stored fields are {len(fields)}: {names}")
    columns = [_checked_column(column, field) for field, column in zip(fields, result, strict=False)]
    return [*columns, *(None for _ in missing)]


def _by_name(result: Mapping[str, Any], fields: Sequence[Field]) -> list[Iterable[Any] | None]:
    _refuse_unknown(result, fields)
    for field in fields:
        if field.required and field.name not in result:
            raise ReturnError(f"returned no column {field.name}")
    return [_checked_column(result.get(field.name), field) for field in fields]


def _checked_column(column: Any, field: Field) -> Iterable[Any] | None:
    if column is None and field.required and not field.type.optional:
        raise ReturnError(f"returned None for the column {field.name}, which has no default")
    if column is not None and (not isinstance(column, Iterable) or _is_value(column)):
        raise ReturnError(f"returned {type(column).__name__} for the column {field.name}; a column is a list")
    return column


def _rows(result: Iterable[Any], fields: Sequence[Field]) -> Iterator[list[Any]]:
    for number, row in enumerate(result, 1):
        if isinstance(row, Mapping):
            try:
                _refuse_unknown(row, fields)
            except ReturnError as error:
                raise ReturnError(f"row {number}: {error}") from None
            yield [row.get(field.name, MISSING) for field in fields]
        elif isinstance(row, (tuple, list)):
            if len(row) > len(fields) or any(field.required for field in fields[len(row) :]):
                names = ", ".join(field.name for field in fields)
                raise ReturnError(
                    f"row {number} has {_count(len(row), 'value')}; the stored fields are {len(fields)}: {names}"
                )
            yield [*row, *(MISSING for _ in fields[len(row) :])]
        elif not any(field.required for field in fields[1:]):
            yield [row, *(MISSING for _ in fields[1:])]
        else:
            names = ", ".join(field.name for field in fields)
            raise ReturnError(f"row {number} is {type(row).__name__}; a row is a dict or a tuple of {names}")


def _refuse_unknown(names: Iterable[str], fields: Sequence[Field]) -> None:
    unknown = [name for name in names if name not in {field.name for field in fields}]
    if unknown:
        stored = ", ".join(field.name for field in fields)
        raise ReturnError(f"{unknown[0]!r} is no stored field; those are {stored}")


def _all(values: Sequence[object], kind: Any) -> bool:
    return bool(values) and all(isinstance(value, kind) for value in values)


def _is_one_column(result: tuple[object, ...]) -> bool:
    return len(result) == 1 and isinstance(result[0], Iterable) and not _is_value(result[0])


def _is_value(value: object) -> bool:
    """Whether it is one value, although it can be iterated."""
    return isinstance(value, (str, bytes, bytearray, memoryview, os.PathLike)) or hasattr(value, "save")


def _example(fields: Sequence[Field]) -> str:
    names = ", ".join(f"{field.name}_list" for field in fields)
    return f"`{names}`: one list for each stored field" if len(fields) > 1 else f"a list of {fields[0].name}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
