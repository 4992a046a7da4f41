"""The types a field may have: what each accepts, its SQL type, how its values cross the pipe to the child.

The spelling of a type is how Python writes it (`File[png | jpg]`, `int | None`, `Literal["cat", "dog"]`), which
is also how the database records it; each type has exactly one spelling. A new scalar type is an entry of
`_SCALARS`. Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import ast
import base64
import json
import math
import types
import typing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gds_lfs.dataset.kinds import KINDS, Kind, KindSet

if TYPE_CHECKING:
    from collections.abc import Callable

Scalar = str | int | float | bytes | None
"""What a cell of the database holds (a bool is stored as 0 or 1)."""


@dataclass(frozen=True)
class _ScalarType:
    python: type
    sql: str
    check: Callable[[Any], Scalar]
    """The stored form of a value of the right type; raises ValueError for what SQLite would change silently."""


def _check_str(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text holds half of a surrogate pair, which UTF-8 cannot hold") from None
    return str(value)


def _check_int(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} does not fit into the 64 bits that SQLite gives an int")
    return int(value)


def _check_float(value: float) -> float:
    if math.isnan(value):
        raise ValueError("SQLite cannot store NaN; declare `float | None` and give None")
    return float(value) + 0.0  # SQLite stores -0.0 as 0.0


_SCALARS: dict[str, _ScalarType] = {
    "str": _ScalarType(str, "TEXT", _check_str),
    "int": _ScalarType(int, "INTEGER", _check_int),
    "float": _ScalarType(float, "REAL", _check_float),
    "bool": _ScalarType(bool, "INTEGER", int),
    "bytes": _ScalarType(bytes, "BLOB", bytes),
}

_WIDENINGS = {("int", "float"), ("bool", "int"), ("bool", "float")}


@dataclass(frozen=True)
class FieldType:
    """A scalar's name, `Literal` with its values or `File` with the names of its kinds; and whether None is a value."""

    base: str
    options: tuple[str | int, ...] = ()
    optional: bool = False

    @property
    def is_file(self) -> bool:
        return self.base == "File"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The declared kinds of a File."""
        return tuple(KINDS[str(name)] for name in self.options)

    @property
    def scalar(self) -> str:
        """The name of the scalar type whose values the field holds."""
        return type(self.options[0]).__name__ if self.base == "Literal" else self.base

    @property
    def sql(self) -> str:
        """The declared type of the column."""
        return "TEXT" if self.is_file else _SCALARS[self.scalar].sql

    @property
    def spelling(self) -> str:
        if self.is_file:
            text = f"File[{' | '.join(str(name) for name in self.options)}]"
        elif self.base == "Literal":
            text = f"Literal[{', '.join(_literal_text(value) for value in self.options)}]"
        else:
            text = self.base
        return f"{text} | None" if self.optional else text

    def __str__(self) -> str:
        return self.spelling

    def check(self, value: object) -> Scalar:
        """The stored form of a scalar; raises ValueError saying what is wrong with it."""
        if value is None:
            if self.optional:
                return None
            raise ValueError(f"None, but the type is {self} (write `{self} | None` where a value may be missing)")
        value = _plain(value)
        wanted = _SCALARS[self.scalar].python
        if wanted is float and type(value) is int:
            value = float(value)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise ValueError(f"{_short(value)} ({type(value).__name__}), but the type is {self}")
        if self.base == "Literal" and value not in self.options:
            raise ValueError(f"{_short(value)}, but the type is {self}")
        return _SCALARS[self.scalar].check(value)

    def encode(self, stored: Scalar) -> Any:
        """A stored scalar as JSON for the pipe."""
        return base64.b64encode(stored).decode() if isinstance(stored, bytes) else stored

    def decode(self, data: Any) -> Scalar:
        """The stored scalar that `encode` made into `data`."""
        if data is not None and self.scalar == "bytes":
            return base64.b64decode(data)
        if self.scalar == "float" and isinstance(data, int):
            return float(data)
        return typing.cast("Scalar", data)

    def to_python(self, stored: Scalar) -> Scalar:
        """The value that user code sees for a stored scalar."""
        return bool(stored) if self.scalar == "bool" and stored is not None else stored

    def widens_to(self, other: FieldType) -> bool:
        """Whether every value of this type is one of `other` as well, apart from None."""
        if self.is_file or other.is_file:
            return self.base == other.base and (set(self.options) <= set(other.options) or "any_file" in other.options)
        if other.base == "Literal":
            return self.base == "Literal" and set(self.options) <= set(other.options)
        return self.scalar == other.scalar or (self.scalar, other.scalar) in _WIDENINGS

    def __or__(self, other: object) -> FieldType:
        if other is None or other is type(None):
            return replace(self, optional=True)
        if isinstance(other, FieldType) and self.is_file and other.is_file:
            more = tuple(name for name in other.options if name not in self.options)
            return FieldType("File", self.options + more, self.optional or other.optional)
        return NotImplemented

    __ror__ = __or__

    def __call__(self) -> None:
        # Optional[...] takes only what can be called, in Python 3.10.
        raise TypeError(f"{self} is the type of a field; it makes no values")


def file_type(kinds: object) -> FieldType:
    """The type of `File[kinds]`; raises TypeError when `kinds` are none."""
    if isinstance(kinds, Kind):
        kinds = KindSet((kinds,))
    if not isinstance(kinds, KindSet):
        raise TypeError(f"File[{_name(kinds)}]: not a kind of file; the kinds are {', '.join(KINDS)}")
    return FieldType("File", tuple(kind.name for kind in kinds.kinds))


def from_annotation(annotation: object) -> FieldType:
    """The field type an annotation means; raises TypeError when it means none."""
    if isinstance(annotation, FieldType):
        return annotation
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        members = [member for member in arguments if member is not type(None)]
        if len(members) == 1 and len(arguments) == 2:
            return from_annotation(members[0]) | None
        raise TypeError(f"{_name(annotation)}: a field has one type, or one type `| None`")
    if origin is typing.Literal:
        return _literal(arguments)
    if isinstance(annotation, type) and annotation.__name__ in _SCALARS:
        found = _SCALARS[annotation.__name__]
        if found.python is annotation:
            return FieldType(annotation.__name__)
    if isinstance(annotation, (Kind, KindSet)):
        raise TypeError(f"{annotation} is a kind of file: write File[{annotation}]")
    if annotation is None or (annotation is None):
        raise TypeError("None is no type of a field")
    raise TypeError(
        f"{_name(annotation)} is no type of a field; the types are {', '.join(_SCALARS)}, Literal[...], File[...]"
    )


def parse_spelling(text: str) -> FieldType:
    """The type with this spelling, as the database records it; raises ValueError for any other text."""
    body, optional = text.removesuffix(" | None"), text.endswith(" | None")
    base, bracket, inner = body.partition("[")
    options: tuple[str | int, ...] = ()
    if base == "Literal" and bracket:
        options = tuple(ast.literal_eval(f"({inner[:-1]},)"))
    elif base == "File" and bracket:
        options = tuple(inner[:-1].split(" | "))
    known = base in _SCALARS or (base == "Literal" and options) or (base == "File" and set(options) <= set(KINDS))
    parsed = FieldType(base, options, optional)
    if not known or parsed.spelling != text:
        raise ValueError(f"{text!r} is no type of a field that this version knows")
    return parsed


def _literal(values: tuple[object, ...]) -> FieldType:
    given = [value for value in values if value is not None]
    if not given or len({type(value) for value in given}) != 1 or type(given[0]) not in (str, int, bool):
        raise TypeError("the values of a Literal are all str, all int or all bool")
    options = typing.cast("tuple[str | int, ...]", tuple(given))
    for option in options:
        if isinstance(option, str):
            _check_str(option)
    return FieldType("Literal", options, optional=len(given) < len(values))


def _literal_text(value: str | int) -> str:
    # JSON's quoting is Python's too, and unlike repr() it is the same in every version.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _plain(value: object) -> object:
    """The Python value inside a NumPy scalar (or anything else that has `item()` and no length)."""
    item = getattr(value, "item", None)
    return item() if callable(item) and not hasattr(value, "__len__") else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else _short(annotation)
