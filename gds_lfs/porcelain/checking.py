"""One dataset under parse, with all that git knows of it: its files laid out, its environment, the stages in order.

`parsing.py` has the command, `parse_events.py` what commits and pushes do with it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs import __version__
from gds_lfs.dataset.database import connect, read_file_fields
from gds_lfs.dataset.install_failure import EnvironmentFailure
from gds_lfs.dataset.parse.advice import Advisor, Limits, Task, size_text
from gds_lfs.dataset.parse.engine import Engine, counted
from gds_lfs.dataset.parse.result import Finding, Result, Rows
from gds_lfs.dataset.sandbox import Confines
from gds_lfs.errors import GitDatasetsError
from gds_lfs.porcelain import child
from gds_lfs.porcelain.drafting import is_pointer
from gds_lfs.porcelain.layout import Layout, lay_out
from gds_lfs.porcelain.surroundings import REQUIREMENTS, Surroundings
from gds_lfs.porcelain.tracking import registrations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gds_lfs.dataset.sandbox import Sandbox
    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.drafting import Drafted, Drafting
    from gds_lfs.porcelain.workspace import Workspace

FILES, ENVIRONMENT, FUNCTIONS, ROWS, PREPROCESS, SAMPLES = (
    "files",
    "environment",
    "functions",
    "rows",
    "preprocess",
    "samples",
)

DEFAULT_TIMEOUT = 600
"""Seconds that one call of a handler may take; ingests and derived fields may take longer, unless the user says so."""


@dataclass(frozen=True)
class Scope:
    """What is parsed: an index file (None: the repository's own) with these entries, which stands for `rev`."""

    index: Path | None
    entries: list[Entry]
    rev: str | None = None


class Check:
    """The parse of one `index.py`, or of what a subclass says: `entry`, whose folder is `base`."""

    program = "index"

    def __init__(self, workspace: Workspace, entry: bytes, scope: Scope, scratch: Path) -> None:
        self.workspace = workspace
        self.entry = entry
        self.scope = scope
        self.scratch = scratch
        self.base = entry[: entry.rfind(b"/") + 1]
        self.clean = scratch / "clean"
        seconds = workspace.settings.get_number("datasets.parseTimeout")
        self.limits = Limits(
            workspace.settings.get_number("datasets.memoryLimit"),
            (DEFAULT_TIMEOUT if seconds is None else seconds) or None,
        )
        self._patience = seconds or None
        self.around = Surroundings(workspace, entry, scope.rev)
        work = os.fspath(workspace.repo.work_tree)
        self.result = Result(os.fsdecode(entry), scope.rev, git_datasets=__version__)
        self.engine = Engine(self.result, Advisor(self.around, os.fspath(self.code), work, self.limits))
        self.layout = Layout(self.clean)
        self.python = ""
        self._is_making = False
        self.show: Callable[[bytes], None] | None = None
        """Also told what is printed, until it is set to None."""

    @property
    def code(self) -> Path:
        """The folder that `where` is relative to: the top of what was laid out."""
        return self.clean

    @property
    def confines(self) -> Confines:
        return Confines(self.code, volumes(self.workspace), self.limits.memory, self.program)

    @property
    def program_entry(self) -> str:
        """The file that is executed, as the child knows it."""
        return os.fsdecode(self.entry)

    def files(self) -> str:
        """Work of a stage: lay the files out."""
        self.layout = lay_out(
            self.workspace, self.scope.entries, self.scope.index, self.clean, data_paths(self.workspace)
        )
        self._know_files()
        return self._files_summary()

    def environment(self) -> str:
        """Work of a stage: choose the interpreter, or make it."""
        python = child.interpreter(self.workspace)
        if self.workspace.settings.get_bool(child.DYNAMIC):
            from gds_lfs.porcelain.venvs import environments

            requirements = self.clean / os.fsdecode(self.base) / REQUIREMENTS
            python = environments().prepare(requirements, python, self.hear_installer)
        self.python = self.around.python = self.result.python = python
        return python

    def first_stages(self) -> bool:
        """Files and environment; whether both are there."""
        self.engine.stage(FILES, self.files)
        return self.engine.stage(ENVIRONMENT, self.environment, (FILES,))

    @contextmanager
    def sandbox(self, sources: dict[str, str]) -> Iterator[Sandbox]:
        """The child, for the stages after the first two."""
        with child.sandbox(
            self.workspace,
            sources,
            self.program_entry,
            self.scratch,
            python=self.python,
            confines=self.confines,
            output=self._hear,
        ) as sandbox:
            self.engine.sandbox = sandbox
            sandbox.set_timeout(self.limits.seconds)
            yield sandbox

    def declare(self) -> None:
        """Execute the code, which may take no longer than a handler."""
        assert self.engine.sandbox is not None
        self.engine.sandbox.declare()

    def rows(self, drafting: Callable[[], Drafted], files: Drafting) -> str:
        """Work of a stage: the rows as they stand, with what ingests and derived fields bring."""
        self.take(self.with_patience(drafting), files)
        return self._rows_summary()

    def with_patience(self, drafting: Callable[[], Drafted]) -> Drafted:
        """Run ingests and derived fields, which may be silent for long, unless the user says otherwise."""
        assert self.engine.sandbox is not None
        self.engine.sandbox.set_timeout(self._patience)
        drafted = drafting()
        self.engine.sandbox.set_timeout(self.limits.seconds)
        return drafted

    def take(self, drafted: Drafted, files: Drafting) -> None:
        """Go on from rows that have been made."""
        made = drafted.result
        cut = bool(self.engine.sandbox and self.engine.sandbox.cut) or bool(made and made.left_out)
        if made is not None:
            names = [run.name for run in drafted.plan.ingests]
            rows = Rows(made.rows, made.added, made.completed, not cut, names, dict(made.computed))
        else:
            with connect(drafted.new) as tables:
                rows = Rows(tables.row_count())
        self.result.rows = rows
        placed = {place.path: place.source for place in made.place} if made is not None else {}
        self._database = drafted.new
        self._files = files.contents.row_files(files.registration.folder, drafted.new, placed)
        if not rows.count:
            self._warn(ROWS, "no_rows", "there is no row yet, so no sample is looked at", "let an ingest bring some")

    def preprocess(self) -> str:
        """Work of a stage: the splits."""
        return self.engine.splits(self._database, self._files.locate)

    def samples(self, number: int = 1) -> str:
        """Work of a stage: values; what they did to the files they were given counts as well."""
        summary = self.engine.samples(number)
        for path in self._files.changed():
            text = f"{path}: code changed this file of a row, which is the dataset's"
            self.result.failures.append(Task(SAMPLES, "").finding("changed_file", text, "let it work on a copy"))
        self.engine.notes()
        return summary

    def _hear(self, data: bytes) -> None:
        self.engine.hear(data)
        if self.show is not None:
            self.show(data)

    def hear_installer(self, data: bytes) -> None:
        """Take what is printed while an environment is made; the user, who waits, is told once."""
        if not self._is_making:
            self._is_making = True
            self.workspace.messages.note(f"making an environment from {REQUIREMENTS}; this is done once")
        self._hear(data)

    def _know_files(self) -> None:
        self.layout.entries = frozenset(entry.path for entry in self.scope.entries)
        self.around.layout = self.layout
        self.result.files = self.layout.files

    def _files_summary(self) -> str:
        files = self.layout.files
        absent = len(self.layout.unfetched)
        more = f", the data of {counted(absent, 'file')} not fetched" if absent else ""
        return f"{counted(len(files), 'file')}, {size_text(self.layout.size)}{more}"

    def _rows_summary(self) -> str:
        rows = self.result.rows
        assert rows is not None
        parts = [f"{', '.join(rows.ingests)} brought {rows.added:,}"] if rows.ingests else []
        parts += [f"{name} computed for {count:,}" for name, count in rows.computed.items()]
        parts += [] if rows.complete else ["a part; --full takes all"]
        return counted(rows.count, "row") + (f" ({'; '.join(parts)})" if parts else "")

    def _warn(self, stage: str, kind: str, text: str, advice: str) -> None:
        self.result.warnings.append(Finding(kind, stage, text, advice))


def python_for(workspace: Workspace, entry: bytes, index: Path | None, scratch: Path) -> str:
    """The interpreter that a dataset asks for, for what runs its code without a parse. Raises EnvironmentFailure."""
    check = Check(workspace, entry, Scope(index, list(workspace.repo.staged(index=index))), scratch)
    check.show = partial(child.show, workspace)
    check.files()
    return check.environment()


def volumes(workspace: Workspace) -> tuple[str, ...] | None:
    """`datasets.volumes`: the folders that may be read besides the code; None where nothing is said."""
    named = [part for value in workspace.settings.get_all("datasets.volumes") for part in value.split(os.pathsep)]
    return tuple(os.path.abspath(os.path.expanduser(part)) for part in named if part) or None


def data_paths(workspace: Workspace) -> list[bytes]:
    """The databases of datasets, and the folders of their File fields."""
    found = []
    for registration in {*registrations(workspace), *registrations(workspace, ":")}:
        found.append(registration.database)
        on_disk = Path(os.fsdecode(workspace.repo.absolute(registration.database)))
        try:
            fields = [] if is_pointer(on_disk) else read_file_fields(on_disk)
        except GitDatasetsError:
            fields = []  # one that is broken or locked is told of where it is needed
        found += [registration.field_folder(field) for field in fields]
    return found


def refuse_wrong_python(python: str, wanted: tuple[int, int] | None) -> None:
    """Raise EnvironmentFailure when an interpreter is not the one that the code asks for."""
    from gds_lfs.dataset.interpreters import probe

    found = probe(python) if wanted is not None else None
    if wanted is not None and found is not None and found.minor != wanted:
        version = ".".join(map(str, wanted))
        raise EnvironmentFailure(
            "wrong_python",
            f"the code asks for Python {version} (pythonVersion), and this is {found}",
            f"git config datasets.dynamicDependencies true makes an environment of it; or name a Python {version}: "
            "git config datasets.python PATH",
        )
