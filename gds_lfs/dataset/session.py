"""The user's dataset in the child: its `index.py` executed once, its ingests and derived fields called.

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gds_lfs.dataset.declaration import Declaration, Field
    from gds_lfs.dataset.spool import Spool
    from gds_lfs.dataset.staged import StagedModules


class Session:
    """The user's dataset, loaded when the first request needs it."""

    def __init__(self, modules: StagedModules, spool: Spool, sources: dict[str, str], entry: str) -> None:
        self._modules = modules
        self._spool = spool
        self._sources = sources
        self._entry = entry
        self._cls: type = object
        self._declaration: Declaration | None = None

    def declare(self) -> Declaration:
        """The declaration with its fingerprints. Executes `index.py` the first time."""
        if self._declaration is None:
            from gds_lfs.dataset.fingerprint import Source
            from gds_lfs.dataset.reader import find_dataset, read_class, with_code

            module = self._modules.load_entry()
            self._cls = find_dataset(vars(module), module.__name__)
            source = Source(self._sources, self._entry)
            self._declaration = with_code(read_class(self._cls, vars(module)), source.function)
        return self._declaration

    def loaded(self) -> tuple[Declaration, type]:
        """The declaration, and the class that it was read from."""
        return self.declare(), self._cls

    def ingest(self, name: str, limit: int | None) -> Iterator[list[Any]]:
        """The rows the ingest brings, encoded; after `limit` of them, an empty list stands for all others.

        Raises ReturnError, and whatever the user's code raises.
        """
        from gds_lfs.dataset.rows import shape

        fields = self.declare().stored
        function: Callable[[], object] = getattr(self._cls, name)
        for number, row in enumerate(shape(function(), fields), 1):
            if limit is not None and number > limit:
                yield []
                return
            yield [self._ingested(value, field, number) for value, field in zip(row, fields, strict=True)]

    def derive(self, name: str, rows: list[list[Any]]) -> Iterator[list[Any]]:
        """The field's value for each row of inputs, encoded. Raises like `ingest`."""
        declaration = self.declare()
        field = declaration.field(name)
        inputs = [declaration.field(each) for each in field.inputs]
        function: Callable[..., object] = getattr(self._cls, name)
        for row in rows:
            result = function(*(_argument(value, each) for value, each in zip(row, inputs, strict=True)))
            yield [self._encoded(result, field)]

    def _ingested(self, value: object, field: Field, number: int) -> Any:
        from gds_lfs.dataset.rows import MISSING, ReturnError

        missing = value is MISSING or (value is None and not field.type.optional)
        if missing and not field.required:
            return field.type.encode(field.default)
        if value is MISSING and not field.type.optional:
            raise ReturnError(f"{field.name}, row {number}: no value, and the field has no default")
        try:
            return self._encoded(None if value is MISSING else value, field)
        except ReturnError as error:
            raise ReturnError(f"{field.name}, row {number}: {error}") from None

    def _encoded(self, value: object, field: Field) -> Any:
        from gds_lfs.dataset.rows import ReturnError

        if value is not None and field.type.is_file:
            return self._spool.take(value, field.type)
        try:
            return field.type.encode(field.type.check(value))
        except ValueError as error:
            raise ReturnError(str(error)) from None


def _argument(value: Any, field: Field) -> object:
    from gds_lfs.dataset.kinds import recognise
    from gds_lfs.dataset.schema import File
    from gds_lfs.dataset.spool import head

    if value is None or not field.type.is_file:
        return field.type.to_python(field.type.decode(value)) if not field.type.is_file else None
    kind = recognise(head(value), os.path.splitext(value)[1][1:], field.type.kinds)
    return File(value, kind.name if kind else None)
