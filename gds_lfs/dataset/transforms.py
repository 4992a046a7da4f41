"""Computing derived fields: inputs first, and only the rows whose value was computed from something else.

A row whose input is not there yet (NULL, in a field whose type has no None) has no value either.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.dataset.draft import discard
from gds_lfs.dataset.identity import FileRef
from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gds_lfs.dataset.declaration import Field
    from gds_lfs.dataset.draft import Draft
    from gds_lfs.dataset.sandbox import Sandbox, Value

_CHUNK = 64


def run(draft: Draft, sandbox: Sandbox, limit: int | None = None) -> dict[str, int]:
    """Compute all derived fields that are not up to date; how many values of each. Raises DatasetError.

    With a `limit`, so many values of each are computed, and the rows that lack others are dropped from the draft.
    """
    counts = {each.name: _compute(each, draft, sandbox, limit) for each in draft.declaration.derived}
    return {name: count for name, count in counts.items() if count}


def _compute(field: Field, draft: Draft, sandbox: Sandbox, limit: int | None) -> int:
    stale = list(draft.tables.stale(field, draft.types))
    if limit is not None and len(stale) > limit:
        draft.drop_rows([identity for identity, _, _ in stale[limit:]])
        stale = stale[:limit]
    for identity, key, is_incomplete in stale:
        if is_incomplete:
            _store(draft, field, identity, None)
            draft.tables.set_derived(field.name, identity, key)
    ready = [(identity, key) for identity, key, is_incomplete in stale if not is_incomplete]
    given: dict[Path, _Given] = {}
    values = sandbox.derive(field.name, _inputs(field, draft, [identity for identity, _ in ready], given))
    step = draft.watch(f"Computing {field.name}", len(ready))
    for (identity, key), value in zip(ready, values, strict=False):  # the last answer was read with the last row
        step()
        _store(draft, field, identity, value)
        draft.tables.set_derived(field.name, identity, key)
    for path, (name, identity, stat) in given.items():
        if _stat(path) != stat:
            raise DatasetError(
                f"the transform {field.name} changed its input {name} of row {identity}; let it work on a copy"
            )
    return len(ready)


_Stat = tuple[int, int, int]


class _Given(NamedTuple):
    """A file that a transform was given: of which field and row, and how it looked."""

    field: str
    identity: str
    stat: _Stat | None


def _stat(path: Path) -> _Stat | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _inputs(
    field: Field, draft: Draft, ids: Sequence[str], given: dict[Path, _Given]
) -> Iterator[tuple[str, list[Value]]]:
    """Each row with what its value is computed from, files being made readable and noted in `given`."""
    inputs = [(name, draft.types[name]) for name in field.inputs]
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        rows = dict(draft.tables.rows(inputs, chunk))
        for identity in chunk:
            cells = zip(field.inputs, rows[identity], strict=True)
            values = [draft.readable(name, identity, cell) for name, cell in cells]
            for name, value in zip(field.inputs, values, strict=True):
                if isinstance(value, Path) and value not in given:
                    given[value] = _Given(name, identity, _stat(value))
            yield identity, values


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
