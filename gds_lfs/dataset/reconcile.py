"""Making a dataset agree with its `index.py`: the plan, and carrying it out.

`plan` is pure: it compares what is declared with the state of the database. `apply` works on a copy of the database in
a scratch folder; what it gives back says which files belong where. Whatever fails, nothing outside that folder has
changed.

A field that is renamed is, here, one that goes and one that comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.dataset import columns, database, ingest, transforms
from gds_lfs.dataset.draft import Draft, Placement, Watch
from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gds_lfs.content.hashing import Oid
    from gds_lfs.dataset.database import State
    from gds_lfs.dataset.declaration import Declaration, Field, Ingest
    from gds_lfs.dataset.fieldtype import FieldType
    from gds_lfs.dataset.sandbox import Sandbox
    from gds_lfs.dataset.tables import Recorded

__all__ = ["Computation", "Placement", "Plan", "Result", "Retype", "Run", "apply", "plan"]


class Retype(NamedTuple):
    """A stored field whose type changes, its values being kept."""

    name: str
    old: FieldType
    new: FieldType


class Run(NamedTuple):
    """An ingest that is to run, and why."""

    name: str
    reason: str


class Computation(NamedTuple):
    """A derived field that is to be computed, and for which rows."""

    name: str
    extent: str


@dataclass(frozen=True)
class Plan:
    """What is to be done, in the order it is done in."""

    declaration: Declaration
    agreement: str
    is_new: bool = False
    drop: tuple[str, ...] = ()
    add: tuple[Field, ...] = ()
    retype: tuple[Retype, ...] = ()
    ingests: tuple[Run, ...] = ()
    compute: tuple[Computation, ...] = ()
    name_rows: int = 0
    orphans: tuple[str, ...] = ()
    record: bool = False
    """What is recorded of the code differs, be it only in what changes no data."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        work = self.is_new or self.record or self.name_rows or self.orphans
        return not (work or self.drop or self.add or self.retype or self.ingests or self.compute)

    def lines(self) -> list[str]:
        """The plan for people, one line a step."""
        lines = [f"make {self.declaration.sql_file}"] if self.is_new else []
        lines += [f"drop field {name}" for name in self.drop]
        lines += [f"add field {field.name}: {field.type}" for field in self.add]
        lines += [f"change field {change.name} from {change.old} to {change.new}" for change in self.retype]
        lines += [f"remove {_count(len(self.orphans), 'file')} of deleted rows"] if self.orphans else []
        lines += [f"give {_count(self.name_rows, 'row')} inserted by hand an id"] if self.name_rows else []
        lines += [f"run ingest {run.name} ({run.reason})" for run in self.ingests]
        lines += [f"compute {computation.name} ({computation.extent})" for computation in self.compute]
        if self.record and not lines:
            lines.append(f"record in {self.declaration.sql_file} that it agrees with the code")
        return lines + self.notices()

    def field_changes(self) -> list[str]:
        """Which fields went, and which stored ones came to a dataset that was there."""
        came = [each.name for each in self.add if not each.derived and not self.is_new]
        gone = [name for name in self.drop if name not in {each.name for each in self.add}]
        return [f"{name} removed" for name in gone] + [f"{name} added" for name in came]

    def notices(self) -> list[str]:
        """What a user may want to know about the plan itself."""
        stored = [each.name for each in self.add if not each.derived]
        if not self.drop or not stored:
            return []
        go, come = "goes" if len(self.drop) == 1 else "go", "comes" if len(self.add) == 1 else "come"
        pair = f"{', '.join(self.drop)} {go} and {', '.join(each.name for each in self.add)} {come}"
        return [f"{pair}: a renamed field is dropped and added; the values that go stay in the last commit"]


@dataclass
class Result:
    """What was made. Paths are relative to the dataset's folder, '/'-separated."""

    database: Path
    place: list[Placement] = field(default_factory=list)
    """The files to put in place, out of the scratch folder."""
    remove: list[str] = field(default_factory=list)
    """The files to remove. None of them is also to be placed."""
    added: int = 0
    completed: int = 0
    """Rows that were there and got values for new fields."""
    rows: int = 0
    computed: dict[str, int] = field(default_factory=dict)
    """How many values of each derived field were computed."""
    fields: list[str] = field(default_factory=list)
    """What became of stored fields, and of derived ones that went: `image removed`."""
    notices: list[str] = field(default_factory=list)
    left_out: int = 0
    """Rows that were there and were dropped from the copy, since only so many were to be computed."""

    def summary(self, removed: int = 0) -> str:
        """One line about it: `3 rows (2 added), segmentation_resized computed for 3`. `removed` rows were deleted by
        hand.
        """
        changes = [f"{self.added} added"] if self.added else []
        changes += [f"{removed} removed"] if removed else []
        changes += [f"{self.completed} completed"] if self.completed else []
        parts = [_count(self.rows, "row") + (f" ({', '.join(changes)})" if changes else "")]
        parts += self.fields
        parts += [f"{name} computed for {count}" for name, count in self.computed.items() if count]
        parts += [f"{_count(len(self.remove), 'file')} removed"] if self.remove else []
        return ", ".join(parts)


def plan(declaration: Declaration, state: State, agreement: str, *, ingest_again: bool = False) -> Plan:
    """What makes a database in this state agree with the declaration; raises DatasetError when nothing can.

    `agreement` is the fingerprint of the code (`fingerprint.agreement`). An ingest runs when its code is not that of
    one that has run, whatever its name; all run when `ingest_again`.
    """
    recorded = {each.name: each for each in state.fields}
    wanted = {each.name: each for each in declaration.fields}
    kept = {name for name in wanted if name in recorded and _is_kept(wanted[name], recorded[name])}
    runs = tuple(
        Run(each.name, reason)
        for each in declaration.ingests
        if (reason := _reason_to_run(each, state, again=ingest_again))
    )
    return Plan(
        declaration,
        agreement,
        is_new=state.agreement is None,
        drop=tuple(name for name in recorded if name not in kept),
        add=tuple(each for each in declaration.fields if each.name not in kept),
        retype=tuple(
            Retype(name, recorded[name].type, wanted[name].type)
            for name in sorted(kept)
            if recorded[name].type != wanted[name].type
        ),
        ingests=runs,
        compute=_computations(declaration, state, kept, has_new_rows=bool(runs)),
        name_rows=state.unnamed,
        orphans=state.orphans,
        record=state.agreement != agreement,
    )


def apply(
    plan: Plan,
    current: Path | None,
    scratch: Path,
    sandbox: Sandbox,
    materialise: Callable[[str, Oid], Path],
    *,
    watch: Watch = lambda _what, _rows: lambda: None,
    limit: int | None = None,
) -> Result:
    """Carry the plan out on a copy of the database `current` (None, or an absent file: on a new one).

    `scratch` is a folder for the copy; `sandbox` runs the user's code, and what it gives back stays in its spool until
    placed; `materialise(path, oid)` gives a file with the content of a row's file; `watch` is told how far it is.
    With a `limit`, the result is for a look alone: of the new rows only so many are taken, and computed.
    Raises DatasetError (and LockedError); then nothing but the scratch folder has changed.
    """
    target = scratch / "dataset.sqlite.new"
    target.unlink(missing_ok=True)
    if current is not None and current.exists():
        database.verify(current)
        database.copy(current, target)
    result = Result(target, fields=plan.field_changes(), notices=plan.notices())
    with database.connect(target, original=current or Path(plan.declaration.sql_file)) as tables:
        # The copy is nobody's but ours: it needs neither a journal nor a barrier.
        tables.connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        tables.connection.execute("PRAGMA synchronous = OFF")
        tables.connection.execute("BEGIN IMMEDIATE")
        if not tables.exist():
            tables.create()
        draft = Draft(tables, plan.declaration, materialise, watch)
        draft.drop_orphans()
        columns.change(draft, plan.drop, plan.add, plan.retype)
        for number in tables.unnamed():
            tables.name_row(number, plan.declaration.stored)
        if plan.ingests:
            new = [each.name for each in plan.add if not each.derived]
            counts = ingest.run([run.name for run in plan.ingests], draft, sandbox, new, limit)
            result.added, result.completed = counts.added, counts.completed
        columns.fill_defaults(tables.connection, plan.declaration.stored)
        result.computed = transforms.run(draft, sandbox, limit)
        tables.record(plan.declaration, plan.agreement)
        result.rows, result.left_out = tables.row_count(), draft.dropped_rows
        result.notices += _notices(draft)
        tables.connection.execute("COMMIT")
    result.place, result.remove = draft.placements(), draft.removals()
    return result


def _is_kept(wanted: Field, recorded: Recorded) -> bool:
    """Whether a field's column stays; raises DatasetError when its values do not fit the new type.

    A derived field is made anew where its column's type changes: its values are computed again anyway. A derived field
    that becomes a stored one keeps its values.
    """
    if wanted.derived:
        return recorded.derived and (wanted.type.is_file, wanted.type.sql) == (recorded.type.is_file, recorded.type.sql)
    if not recorded.type.widens_to(wanted.type):
        raise DatasetError(
            f"{wanted.name}: {recorded.type} cannot become {wanted.type}, its values may not fit. Give the new field "
            f"another name, or commit once without {wanted.name} and declare it anew"
        )
    return True


def _reason_to_run(each: Ingest, state: State, *, again: bool) -> str:
    if each.code in state.ingests.values():
        return "again" if again else ""
    return "its code changed" if each.name in state.ingests else "new"


def _computations(
    declaration: Declaration, state: State, kept: set[str], *, has_new_rows: bool
) -> tuple[Computation, ...]:
    recorded = {each.name: each for each in state.fields}
    rows = "every row" if has_new_rows else _count(state.rows, "row")
    found: dict[str, str] = {}
    for each in declaration.derived:
        old = recorded.get(each.name)
        if old is None:
            extent = f"new, {rows}"
        elif each.name not in kept:
            extent = f"its type changed, {rows}"
        elif (old.code, old.inputs, old.type) != (each.code, each.inputs, each.type):
            extent = f"its code changed, {rows}"
        elif any(name in found for name in each.inputs):
            extent = "rows whose inputs change"
        elif any(name not in kept for name in each.inputs):
            extent = f"its inputs changed, {rows}"
        elif each.name in state.stale:
            extent = f"{_count(state.stale[each.name], 'row')} whose inputs changed"
        elif has_new_rows:
            extent = "new rows"
        else:
            continue
        found[each.name] = extent
    return tuple(Computation(name, extent) for name, extent in found.items())


def _notices(draft: Draft) -> list[str]:
    notices = []
    for each in draft.declaration.stored:
        count = 0 if each.type.optional else draft.tables.empty_cells(each.name)
        if count:
            have = "row has" if count == 1 else "rows have"
            notices.append(
                f"{each.name}: {count} {have} no value yet; let an ingest return it, set it with SQL, or declare a "
                f"default or `{each.type} | None`"
            )
    for name in draft.declaration.file_fields():
        if count := draft.tables.foreign_files(name):
            notices.append(
                f"{name}: {_count(count, 'path')} written by hand; files come from ingests and transforms alone"
            )
    return notices


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
