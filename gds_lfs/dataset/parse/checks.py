"""What is wrong with values: pure functions of their descriptions (`describe`), one sample at a time.

A value that cannot be used is a failure; one that can, but is seldom meant, a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.dataset.parse.program import FIELDS, METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gds_lfs.dataset.parse.result import Function, Sample, Value

_WIDER = {"float": {"int"}}
_TYPE_NAMES = {"str_": "str", "bool_": "bool", "float64": "float", "int64": "int"}


class Problem(NamedTuple):
    """What is wrong, and what to do about it."""

    kind: str
    text: str
    advice: str
    is_failure: bool = True


def value_problems(function: Function, value: Value) -> Iterator[Problem]:
    """What is wrong with one value by itself."""
    if function.kind in FIELDS:
        return  # None and NaN are what its type allows
    if value.type == "None":
        yield _none(function)
    elif value.problem is not None:
        yield Problem("wrong_type", value.problem, _expected(function))
    elif value.items is not None:
        yield from _dict_problems(function, value.items)
    else:
        yield from _shape_problems(function, value)
        yield from _number_problems(function, value)
        yield from _declared_problems(function, value)


class Changes:
    """Remembers how the first sample of each handler looked, and says where another differs."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str, str], Sample] = {}
        self._told: set[tuple[str, str, str, str]] = set()

    def look(self, sample: Sample) -> Iterator[Problem]:
        """What differs from the first sample of the handler; each difference is told once a split."""
        if sample.value is None or sample.value.type == "None" or sample.kind in FIELDS:
            return
        parts = sample.value.items if sample.value.items is not None else {"": sample.value}
        for name, value in parts.items():
            first = self._first.setdefault((sample.kind, sample.name, name), sample)
            if first is sample or first.value is None:
                continue
            before = first.value if first.value.items is None else first.value.items.get(name)
            if before is None or value.type == "None" or before.type == "None":
                continue
            for problem in _differences(sample, first, before, value, f"{name}: " if name else ""):
                key = (sample.kind, sample.name, sample.split, problem.kind)
                if key not in self._told:
                    self._told.add(key)
                    yield problem


def _differences(sample: Sample, first: Sample, before: Value, value: Value, part: str) -> Iterator[Problem]:
    where = f"sample {first.id} of {first.split}"
    is_failure = sample.kind != METADATA
    if before.dtype != value.dtype:
        text = f"{part}dtype {value.dtype}, but {before.dtype} for {where}"
        yield Problem("dtype_changes", text, "convert it to one dtype for every sample", is_failure)
    if before.shape != value.shape:
        text = f"{part}shape {shape_text(value.shape)}, but {shape_text(before.shape)} for {where}"
        yield Problem("shape_changes", text, "resize, crop or pad it to one shape for every sample", is_failure)


def _none(function: Function) -> Problem:
    advice = "return a value for every sample; is a `return` missing?"
    return Problem("none_value", "it returned None", advice, function.kind != METADATA)


def _expected(function: Function) -> str:
    if function.kind == METADATA:
        return "return a scalar, or a flat dict of scalars"
    return "return an array, a number or a (nested) list of numbers"


def _dict_problems(function: Function, items: dict[str, Value]) -> Iterator[Problem]:
    if function.kind != METADATA:
        yield Problem("wrong_type", "it returned a dict", _expected(function))
        return
    if function.declared not in ("", "dict"):
        yield Problem(
            "wrong_type", f"it is a dict, declared as {function.declared}", "return a scalar, or declare dict"
        )
    for name, value in items.items():
        if value.items is not None or value.shape or value.problem is not None:
            yield Problem("wrong_type", f"{name} is {_what(value)}, not a scalar", _expected(function))
        elif value.type == "None":
            yield Problem("none_value", f"{name} is None", "give it a value, or leave it out", is_failure=False)
        else:
            yield from (each._replace(text=f"{name}: {each.text}") for each in _number_problems(function, value))


def _shape_problems(function: Function, value: Value) -> Iterator[Problem]:
    if function.kind == METADATA:
        if value.shape and value.shape != [1]:
            yield Problem("wrong_type", f"it returned {_what(value)}, not a scalar", _expected(function))
    elif value.dtype in ("str", "bytes"):
        yield Problem("wrong_type", f"it returned {value.type}", _expected(function))
    elif value.shape is not None and 0 in value.shape:
        yield Problem("wrong_type", f"it returned nothing: shape {shape_text(value.shape)}", _expected(function))


def _number_problems(function: Function, value: Value) -> Iterator[Problem]:
    matters = function.kind != METADATA
    if value.nan:
        text = f"it holds NaN ({value.nan:,} of {_size(value):,} values)" if value.shape else "it is NaN"
        yield Problem("nan_value", text, "replace NaN before it is returned: it makes every loss NaN", matters)
    if value.infinite:
        text = f"it holds infinity ({value.infinite:,} of {_size(value):,} values)" if value.shape else "it is infinite"
        yield Problem("infinite_value", text, "look for a division by zero or an overflow", is_failure=False)


def _declared_problems(function: Function, value: Value) -> Iterator[Problem]:
    wanted = function.declared
    if not wanted:
        return
    found = {value.type, value.dtype, _TYPE_NAMES.get(value.type, value.type)}
    if not value.shape:
        found.add(_TYPE_NAMES.get(value.dtype or "", value.dtype))
    if wanted not in found and not _WIDER.get(wanted, set()) & found:
        got = value.dtype if value.shape is not None and value.dtype else value.type
        yield Problem("wrong_type", f"it is {got}, declared as {wanted}", f"convert it to {wanted}, or declare {got}")


def _what(value: Value) -> str:
    if value.items is not None:
        return "a dict"
    return f"{value.type} of shape {shape_text(value.shape)}" if value.shape else value.type


def _size(value: Value) -> int:
    size = 1
    for each in value.shape or ():
        size *= each
    return size


def shape_text(shape: list[int] | None) -> str:
    """`28×28×1`; `scalar` for a single value."""
    return "×".join(map(str, shape)) if shape else "scalar"
