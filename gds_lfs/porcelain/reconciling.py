"""One dataset made to agree with its staged `index.py`: from the index of a commit to what that index is to become.

User code runs in a child on copies in a scratch folder. What comes out is a `Target`, which `applying.py` carries out
or leaves undone as a whole. What of the index belongs to the dataset is told by the index's own database: its rows
name their files, so a row that is gone takes its files along, and a file that nobody names is nobody's.
"""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import EMPTY, Oid, oid_of_file
from gds_lfs.content.pointer import MAX_SIZE, Pointer, recognise
from gds_lfs.errors import DatasetError, MissingObjectError
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import child, setup_texts, sidecars
from gds_lfs.porcelain.applying import Placement, Target, carry_out
from gds_lfs.porcelain.checkout import replace
from gds_lfs.porcelain.pointers import in_entries
from gds_lfs.porcelain.tracking import registrations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gds_lfs.dataset.declaration import Declaration
    from gds_lfs.dataset.reconcile import Plan, Result
    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.tracking import Registration
    from gds_lfs.porcelain.workspace import Workspace


class Reconciliation:
    """One dataset and one index, `index` being the file that git gave to a hook (None: the repository's own)."""

    def __init__(self, workspace: Workspace, registration: Registration, index: Path | None) -> None:
        self.workspace = workspace
        self.repo = workspace.repo
        self.registration = registration
        self.index = index

    def plan(self) -> list[str]:
        """What a commit would do, line by line; nothing is changed. Raises DatasetError and its kin."""
        with child.scratch_folder(self.workspace) as scratch:
            database = self._current_database(scratch)
            sources = child.staged_sources(self.workspace, self.index)
            entry = child.require_source(sources, self.registration.index)
            with child.sandbox(self.workspace, sources, entry, scratch) as sandbox:
                return self._plan(sandbox.declare(), sources, entry, database).lines()

    def run(self, changed: set[bytes], *, force: bool = False) -> bool:
        """Bring index and work tree up to date; True if anything changed.

        Nothing more is looked at once the database says that it agrees with the staged code, unless `force`, or
        one of the `changed` paths is the dataset's.
        Raises DatasetError, MissingObjectError, LockedError, StoreWriteError; then nothing has changed.
        """
        if not self._index_py_is_staged():
            return False  # the dataset's file is being removed: its data is the user's to remove
        sources = child.staged_sources(self.workspace, self.index)
        entry = child.require_source(sources, self.registration.index)
        with child.scratch_folder(self.workspace) as scratch:
            database = self._current_database(scratch)
            if not force and not self._touches(database, changed) and self._agrees(database, sources, entry):
                return False
            result = None
            with child.sandbox(self.workspace, sources, entry, scratch) as sandbox:
                declaration = sandbox.declare()
                plan = self._plan(declaration, sources, entry, database)
                if not plan.empty:
                    from gds_lfs.dataset import reconcile

                    result = reconcile.apply(plan, database, scratch, sandbox, self._materialise(scratch))
            target = self._target(declaration, database, result, scratch)
            done = carry_out(self.workspace, self.registration, target, self.index)
        self._report(result, changed=done)
        return done

    def _touches(self, database: Path | None, changed: set[bytes]) -> bool:
        """Whether any of the paths is the dataset's file, its database, or in one of its folders."""
        from gds_lfs.dataset.database import read_state

        registration = self.registration
        if registration.index in changed or registration.database in changed:
            return True
        folders = tuple(registration.field_folder(name) + b"/" for name in read_state(database).file_fields())
        return any(path.startswith(folders) for path in changed)

    def _agrees(self, database: Path | None, sources: dict[str, str], entry: str) -> bool:
        from gds_lfs.dataset import fingerprint
        from gds_lfs.dataset.database import read_agreement

        return read_agreement(database) == fingerprint.agreement(sources, entry)

    def _plan(self, declaration: Declaration, sources: dict[str, str], entry: str, database: Path | None) -> Plan:
        from gds_lfs.dataset import fingerprint, reconcile
        from gds_lfs.dataset.database import read_state

        return reconcile.plan(declaration, read_state(database), fingerprint.agreement(sources, entry))

    def _index_py_is_staged(self) -> bool:
        return any(True for _ in self.repo.staged([self.registration.index], self.index))

    def _current_database(self, scratch: Path) -> Path | None:
        """The database to start from: the work tree's, with what its `-wal` holds, or the index's where that one is
        absent or a pointer.
        """
        path = self.registration.database
        on_disk = Path(os.fsdecode(self.repo.absolute(path)))
        if not on_disk.is_file():
            return self._index_database(scratch)
        with on_disk.open("rb") as file:
            pointer = recognise(file.read(MAX_SIZE + 1))
        if pointer is None:
            sidecars.fold(self.workspace, path)
            return on_disk
        return self._copy(scratch / "current.sqlite", quote(path), pointer.oid)

    def _index_database(self, scratch: Path) -> Path | None:
        """The database that the index holds, as a copy in the scratch folder."""
        path = self.registration.database
        found = next(in_entries(self.repo, self.repo.staged([path], self.index)), None)
        return self._copy(scratch / "index.sqlite", quote(path), found.pointer.oid) if found else None

    def _copy(self, copy: Path, name: str, oid: Oid) -> Path:
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            replace(os.fsencode(copy), self.pieces(name, oid))
        return copy

    def pieces(self, name: str, oid: Oid) -> Iterator[bytes]:
        """A content from the store, fetched when it is not there. Raises MissingObjectError."""
        if oid == EMPTY:
            return iter(())
        if not self.workspace.store.has(oid):
            from gds_lfs.porcelain.sync import fetch_objects

            if oid not in fetch_objects(self.workspace, {oid: name}).fetched:
                raise MissingObjectError(f"{name}: its data is neither here nor on the remote", oid)
        return self.workspace.store.pieces(oid)

    def _materialise(self, scratch: Path) -> Callable[[str, Oid], Path]:
        """How a transform gets a row's file: the work tree's if it has that content, else a copy from the store."""

        def materialise(relative: str, oid: Oid) -> Path:
            path = self.registration.folder + os.fsencode(relative)
            on_disk = Path(os.fsdecode(self.repo.absolute(path)))
            if on_disk.is_file() and oid_of_file(on_disk) == oid:
                return on_disk
            return self._copy(scratch / "inputs" / relative, quote(path), oid)

        return materialise

    def _target(self, declaration: Declaration, database: Path | None, result: Result | None, scratch: Path) -> Target:
        """What the index is to hold for this dataset. Raises DatasetError where the user staged other content."""
        new = result.database if result is not None else database
        assert new is not None  # an absent database is never up to date, so there is a result
        folder = self.registration.folder
        sources = {folder + os.fsencode(placed.path): placed.source for placed in result.place} if result else {}
        wanted = self._files(new)
        owned = self._owned(scratch)
        current = {self.registration.field_folder(name) for name in declaration.file_fields()}
        former = {path[: path.index(b"/", len(folder))] for path in owned} - current
        entries = {e.path: e for e in self.repo.staged(sorted(current | former), self.index)}
        target = Target(new, replaced=result is not None)
        for path, pointer in wanted.items():
            if self._is_as_wanted(path, pointer, entries.get(path), owned.get(path)):
                continue
            target.place[path] = Placement(pointer, sources.get(path), partial(self.pieces, quote(path), pointer.oid))
        target.remove = {path: entries.get(path) for path in owned if path not in wanted}
        within = tuple(name + b"/" for name in current)
        target.strays = [p for p in entries if p.startswith(within) and p not in wanted and p not in owned]
        target.texts = setup_texts.edits(self.workspace, self.registration, declaration, former, self.index)
        return target

    def _owned(self, scratch: Path) -> dict[bytes, Pointer]:
        """The files that the index's own database names."""
        database = self._index_database(scratch)
        return {} if database is None else self._files(database)

    def _files(self, database: Path) -> dict[bytes, Pointer]:
        """The files of a database's rows, and an empty `.gitkeep` for each folder that has none: git keeps no folder
        without a file.
        """
        from gds_lfs.dataset.database import files, read_state

        registration = self.registration
        found = {registration.folder + os.fsencode(f.path): Pointer(f.oid, f.size) for f in files(database)}
        folders = {path[: path.index(b"/", len(registration.folder))] for path in found}
        declared = {registration.field_folder(name) for name in read_state(database).file_fields()}
        return found | dict.fromkeys((folder + b"/.gitkeep" for folder in declared - folders), Pointer(EMPTY, 0))

    def _is_as_wanted(self, path: bytes, pointer: Pointer, entry: Entry | None, owned: Pointer | None) -> bool:
        """Whether the index has a row's file. Raises DatasetError where it has other content, put there by hand."""
        if entry is not None and entry.sha == blob_id(self.repo.object_format, pointer):
            return True
        if entry is not None and owned == pointer:
            raise DatasetError(
                f"{quote(path)} was changed by hand, but rows come from {quote(self.registration.index)} alone.\n"
                f"Take it back with `git checkout HEAD -- {quote(path)}`, and change the code that makes it instead"
            )
        return False

    def _report(self, result: Result | None, *, changed: bool) -> None:
        messages = self.workspace.messages
        for notice in result.notices if result is not None else ():
            messages.warn(notice)
        if changed and result is not None:
            messages.note(f"{quote(self.registration.index)}: {result.summary()}")


def disagreeing(workspace: Workspace) -> list[Registration]:
    """The datasets whose database in the work tree was made by other code than the `index.py` in the index."""
    from gds_lfs.dataset import fingerprint
    from gds_lfs.dataset.database import read_agreement

    found = []
    sources: dict[str, str] | None = None
    for registration in registrations(workspace):
        database = Path(os.fsdecode(workspace.repo.absolute(registration.database)))
        if sources is None:
            sources = child.staged_sources(workspace)
        entry = os.fsdecode(registration.index)
        if entry not in sources or is_pointer(database):
            continue
        if read_agreement(database) != fingerprint.agreement(sources, entry):
            found.append(registration)
    return found


def is_pointer(file: Path) -> bool:
    """Whether a work-tree file holds a pointer in place of its content."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return recognise(stream.read(MAX_SIZE + 1)) is not None


def blob_id(object_format: str, pointer: Pointer) -> bytes:
    """The id git gives to the blob of a pointer; an empty file is an empty blob."""
    text = pointer.encode() if pointer.size else b""
    return hashlib.new(object_format, b"blob %d\0" % len(text) + text).hexdigest().encode()
