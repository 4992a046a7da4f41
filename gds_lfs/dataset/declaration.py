"""What an `index.py` declares, as plain values that have a JSON form.

Standard library only: the user's interpreter makes it, the parent gets the JSON.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from gds_lfs.dataset.fieldtype import FieldType, Scalar, parse_spelling


class DeclarationError(Exception):
    """An `index.py` that declares something a dataset cannot be; the message says what and how to say it."""


@dataclass(frozen=True)
class Field:
    """A column of the dataset. A derived one has the names of its `inputs` and the fingerprint of its `code`."""

    name: str
    type: FieldType
    required: bool = True
    """Whether a new row must bring a value: it has no default."""
    default: Scalar = None
    derived: bool = False
    inputs: tuple[str, ...] = ()
    code: str = ""


@dataclass(frozen=True)
class Ingest:
    """A function that brings rows, and the fingerprint of its code."""

    name: str
    code: str = ""


@dataclass(frozen=True)
class Declaration:
    """All that an `index.py` says. Fields come in the order of their columns: stored ones, then derived ones."""

    name: str
    sql_file: str
    remote: str | None
    fields: tuple[Field, ...]
    ingests: tuple[Ingest, ...] = ()

    @property
    def stored(self) -> tuple[Field, ...]:
        """The fields that ingests bring."""
        return tuple(field for field in self.fields if not field.derived)

    @property
    def derived(self) -> tuple[Field, ...]:
        """The computed fields, each after those it is computed from."""
        return ordered(tuple(field for field in self.fields if field.derived))

    def field(self, name: str) -> Field:
        """The field of this name; raises KeyError."""
        return {field.name: field for field in self.fields}[name]

    def file_fields(self) -> list[str]:
        """The names of the fields that have a folder."""
        return [field.name for field in self.fields if field.type.is_file]

    def to_json(self) -> dict[str, Any]:
        data = dataclasses.asdict(self)
        for encoded, field in zip(data["fields"], self.fields, strict=True):
            encoded["type"] = field.type.spelling
            encoded["default"] = field.type.encode(field.default)
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Declaration:
        fields = []
        for encoded in data["fields"]:
            kind = parse_spelling(encoded["type"])
            default = None if kind.is_file else kind.decode(encoded["default"])
            fields.append(Field(**{**encoded, "type": kind, "default": default, "inputs": tuple(encoded["inputs"])}))
        ingests = tuple(Ingest(**encoded) for encoded in data["ingests"])
        return cls(data["name"], data["sql_file"], data["remote"], tuple(fields), ingests)


def ordered(derived: tuple[Field, ...]) -> tuple[Field, ...]:
    """The derived fields, inputs first and otherwise as declared; raises DeclarationError naming a cycle."""
    by_name = {field.name: field for field in derived}
    done: dict[str, Field] = {}

    def visit(field: Field, path: tuple[str, ...]) -> None:
        if field.name in path:
            cycle = " <- ".join([*path[path.index(field.name) :], field.name])
            raise DeclarationError(f"fields computed from each other in a circle: {cycle}")
        for name in field.inputs:
            if name in by_name and name not in done:
                visit(by_name[name], (*path, field.name))
        done[field.name] = field

    for field in derived:
        if field.name not in done:
            visit(field, ())
    return tuple(done.values())
