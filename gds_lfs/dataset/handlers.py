"""The functions of a dataset's class that prepare its rows for training: what they are called, and what they may be.

They make no field and no row. Standard library only: it runs in the user's interpreter, on their class.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from gds_lfs.dataset.declaration import DeclarationError
from gds_lfs.dataset.schema import HANDLER_MARK, INGEST_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Handler(NamedTuple):
    """A decorated function: `kind` is `preprocess`, `input`, `ground_truth` or `metadata`."""

    kind: str
    name: str
    function: Callable[[Any], Any]


def is_handler(value: Any) -> bool:
    """Whether a member of the class is marked as a handler."""
    return bool(_marks(value))


def read_handlers(cls: type, fields: Iterable[str]) -> list[Handler]:
    """The handlers of a dataset's class with these fields; raises DeclarationError."""
    found: dict[tuple[str, str], Handler] = {}
    for member, value in vars(cls).items():
        for kind, name in _marks(value):
            function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            _check(member, kind, function)
            if member in fields:
                raise DeclarationError(f"{member} is a field already: give the function under @{kind} another name")
            if (kind, name) in found:
                earlier = found[kind, name].function.__name__
                what = f"a second @{kind}" if not name else f"{kind} {name!r} is what {earlier} makes already"
                raise DeclarationError(f"{member}: {what}; keep one of them")
            found[kind, name] = Handler(kind, name or member, function)
    return list(found.values())


def _marks(value: Any) -> tuple[tuple[str, str], ...]:
    # On the function, or on the staticmethod around it.
    inner = getattr(value, "__func__", value)
    marks: tuple[tuple[str, str], ...] = getattr(inner, "__dict__", {}).get(HANDLER_MARK, ())
    return marks or getattr(value, "__dict__", {}).get(HANDLER_MARK, ())


def _check(member: str, kind: str, function: Any) -> None:
    if not inspect.isroutine(function):
        raise DeclarationError(f"{member}: @{kind} decorates a function")
    if INGEST_MARK in vars(function):
        raise DeclarationError(f"{member}: @ingest brings rows, @{kind} takes rows that are there: write two functions")
    odd = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if odd or inspect.isgeneratorfunction(function):
        raise DeclarationError(f"{member}: @{kind} decorates a plain function, not one that yields or is async")
    parameters = list(inspect.signature(function).parameters.values())
    required = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_POSITIONAL]
    takes = "rows" if kind == "preprocess" else "row"
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if parameters and parameters[0].name in ("self", "cls"):
        raise DeclarationError(f"{member}: drop `{parameters[0].name}`; under @{kind} it takes the {takes} alone")
    if not positional or required not in ([], [positional[0]]):
        raise DeclarationError(f"{member}: a function under @{kind} takes one thing: `def {member}({takes})`")
