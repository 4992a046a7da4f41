"""What a dataset's code makes of it, before anything outside a scratch folder is touched: a new database, and files.

User code runs in a child, on copies. `reconciling.py` makes of it what the index is to become; a parse only looks.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content.pointer import held_by
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import child, sidecars
from gds_lfs.porcelain.contents import Contents
from gds_lfs.porcelain.pointers import in_entries
from gds_lfs.porcelain.target import file_state

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from gds_lfs.dataset.declaration import Declaration
    from gds_lfs.dataset.reconcile import Plan, Result
    from gds_lfs.dataset.sandbox import Sandbox
    from gds_lfs.porcelain.target import FileState
    from gds_lfs.porcelain.tracking import Registration
    from gds_lfs.porcelain.workspace import Workspace


class Drafted(NamedTuple):
    """What the user's code made of a dataset, before anything outside the scratch folder is touched."""

    declaration: Declaration
    former: bytes
    """The database's path until now."""
    database: Path | None
    """The database that was started from."""
    seen: FileState | None
    plan: Plan
    result: Result | None

    @property
    def new(self) -> Path:
        """The database that it comes to."""
        new = self.result.database if self.result is not None else self.database
        assert new is not None  # an absent database is never up to date, so there is a result
        return new


class Drafting:
    """One dataset and one index, `index` being the file that git gave to a hook (None: the repository's own).

    `frozen`: the index stands for a commit, so that nothing of the work tree counts.
    """

    def __init__(
        self,
        workspace: Workspace,
        registration: Registration,
        index: Path | None,
        scratch: Path,
        *,
        frozen: bool = False,
    ) -> None:
        self._frozen = frozen
        self.workspace = workspace
        self.repo = workspace.repo
        self.registration = registration
        self.index = index
        self.scratch = scratch
        self.contents = Contents(workspace, scratch)

    def plan(self, *, again: bool = False) -> list[str]:
        """What a commit would do, line by line; nothing is changed. Raises DatasetError and its kin."""
        sources = child.staged_sources(self.workspace, self.index)
        entry = child.require_source(sources, self.registration.index)
        database = self.current_database()
        with self._sandbox(sources, entry) as sandbox:
            declaration = sandbox.declare()
            database = self._database_for(declaration) or database
            return self._plan(declaration, sources, entry, database, again=again).lines()

    def draft(
        self,
        sandbox: Sandbox,
        sources: dict[str, str],
        entry: str,
        database: Path | None,
        *,
        again: bool = False,
        limit: int | None = None,
    ) -> Drafted:
        """Run the user's code and make what the database is to become, from `database`, in the scratch folder.

        With a `limit`, for a look alone (see `reconcile.apply`). Raises DatasetError, MissingObjectError, LockedError.
        """
        from gds_lfs.dataset import reconcile

        declaration = sandbox.declare()
        former = self.registration.database
        database = self._database_for(declaration) or database
        seen = file_state(Path(os.fsdecode(self.repo.absolute(self.registration.database))))
        plan = self._plan(declaration, sources, entry, database, again=again)
        result = None
        if not plan.empty:
            with self.contents.inputs(self.registration.folder, database) as materialise:
                result = reconcile.apply(
                    plan, database, self.scratch, sandbox, materialise, watch=self._watch, limit=limit
                )
            self.workspace.messages.progress.done()
        return Drafted(declaration, former, database, seen, plan, result)

    def _sandbox(self, sources: dict[str, str], entry: str) -> AbstractContextManager[Sandbox]:
        """The child, in the environment that the dataset asks for."""
        python = None
        if self.workspace.settings.get_bool(child.DYNAMIC):
            from gds_lfs.porcelain.checking import python_for

            python = python_for(self.workspace, self.registration.index, self.index, self.scratch)
        return child.sandbox(self.workspace, sources, entry, self.scratch, python=python)

    def _watch(self, what: str, rows: int) -> Callable[[], None]:
        progress = self.workspace.messages.progress
        progress.start(what, 0, rows)
        return partial(progress.advance, 0, 1)

    def _database_for(self, declaration: Declaration) -> Path | None:
        """Go over to the database that the declaration names, if it is another one, and take it where it exists."""
        declared = replace(self.registration, database=self.registration.folder + declaration.sql_file.encode())
        if declared == self.registration:
            return None
        self.registration = declared
        return self.current_database()

    def _plan(
        self,
        declaration: Declaration,
        sources: dict[str, str],
        entry: str,
        database: Path | None,
        *,
        again: bool = False,
    ) -> Plan:
        from gds_lfs.dataset import fingerprint, reconcile
        from gds_lfs.dataset.database import read_state

        agreement = fingerprint.agreement(sources, entry)
        return reconcile.plan(declaration, read_state(database), agreement, ingest_again=again)

    def current_database(self) -> Path | None:
        """The database to start from: the work tree's, with what its `-wal` holds; the index's where that one is
        absent or a pointer; the last commit's where somebody deleted it: rows made with SQL would not come back.
        """
        path = self.registration.database
        if self._frozen:
            return self._index_database(path)
        on_disk = Path(os.fsdecode(self.repo.absolute(path)))
        if not on_disk.is_file():
            return self._index_database(path) or self._deleted_database(path)
        pointer = held_by(on_disk)
        if pointer is None:
            sidecars.fold(self.workspace, path)
            return on_disk
        return self.contents.database(quote(path), pointer.oid)

    def _index_database(self, path: bytes) -> Path | None:
        """The database that the index holds, as a copy in the scratch folder."""
        found = next(in_entries(self.repo, self.repo.staged([path], self.index)), None)
        return self.contents.database(quote(path), found.pointer.oid) if found else None

    def _deleted_database(self, path: bytes) -> Path | None:
        found = self._committed_database(path)
        if found is not None:
            self.workspace.messages.warn(
                f"{quote(path)} was deleted, but belongs to {quote(self.registration.index)}: restored"
            )
        return found

    def _committed_database(self, path: bytes) -> Path | None:
        """The last commit's database, as a copy in the scratch folder."""
        found = next(in_entries(self.repo, self.repo.tree("HEAD", [path])), None) if self._is_commit("HEAD") else None
        return self.contents.database(quote(path), found.pointer.oid) if found else None

    def _is_commit(self, rev: str) -> bool:
        return bool(self.repo.run("rev-parse", "--quiet", "--verify", f"{rev}^{{commit}}", check=False))


def is_pointer(file: Path) -> bool:
    """Whether a work-tree file holds a pointer in place of its content."""
    return file.is_file() and held_by(file) is not None
