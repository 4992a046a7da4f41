"""Computing derived fields: inputs first, and only the rows whose value was computed from something else.

A row whose input is not there yet (NULL, in a field whose type has no None) has no value either.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.dataset.draft import discard
from gds_lfs.dataset.identity import FileRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gds_lfs.dataset.declaration import Field
    from gds_lfs.dataset.draft import Draft
    from gds_lfs.dataset.sandbox import Sandbox, Value

_CHUNK = 64


def run(draft: Draft, sandbox: Sandbox) -> dict[str, int]:
    """Compute all derived fields that are not up to date; how many values of each. Raises DatasetError."""
    return {field.name: count for field in draft.declaration.derived if (count := _compute(field, draft, sandbox))}


def _compute(field: Field, draft: Draft, sandbox: Sandbox) -> int:
    stale = list(draft.tables.stale(field, draft.types))
    for identity, key, is_incomplete in stale:
        if is_incomplete:
            _store(draft, field, identity, None)
            draft.tables.set_derived(field.name, identity, key)
    ready = [(identity, key) for identity, key, is_incomplete in stale if not is_incomplete]
    values = sandbox.derive(field.name, _inputs(field, draft, [identity for identity, _ in ready]))
    for (identity, key), value in zip(ready, values, strict=False):  # the last answer was read with the last row
        _store(draft, field, identity, value)
        draft.tables.set_derived(field.name, identity, key)
    return len(ready)


def _inputs(field: Field, draft: Draft, ids: Sequence[str]) -> Iterator[tuple[str, list[Value]]]:
    """Each row with what its value is computed from, files being made readable."""
    inputs = [(name, draft.types[name]) for name in field.inputs]
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        rows = dict(draft.tables.rows(inputs, chunk))
        for identity in chunk:
            cells = zip(field.inputs, rows[identity], strict=True)
            yield identity, [draft.readable(name, identity, cell) for name, cell in cells]


def _store(draft: Draft, field: Field, identity: str, value: Value) -> None:
    """Make it the row's value. A file that came out as it was stays where it is."""
    cell = draft.cell(value)
    old = draft.tables.file(field.name, identity) if field.type.is_file else None
    if old is not None:
        if old.file == cell:
            discard(value)
            return
        draft.drop_files([old])
    draft.tables.update(identity, [(field.name, cell)])
    if isinstance(cell, FileRef) and isinstance(value, Path):
        draft.place(field.name, identity, cell, value)
