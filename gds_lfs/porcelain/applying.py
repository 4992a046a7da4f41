"""Reconciliations carried out: store, journal, work tree, index, in this order.

What is stored before the journal harms nobody. From the journal on, an error is undone and the repository is as it
was; once the index has it all, the journal waits for post-commit.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace as replace_field

from gds_lfs.content.hashing import EMPTY
from gds_lfs.content.pointer import Pointer
from gds_lfs.dataset.database import held
from gds_lfs.errors import DatasetError
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import checkout, journal, recovery, sidecars
from gds_lfs.porcelain.journal import Journal, Kept, Placed, Removed, Source, Staged
from gds_lfs.porcelain.pointers import pointers_of
from gds_lfs.porcelain.staging import FILE, Blob, stage
from gds_lfs.porcelain.target import Target, content_of, file_state, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.setup_texts import TextEdit
    from gds_lfs.porcelain.workspace import Workspace


def carry_out(
    workspace: Workspace,
    targets: Sequence[Target],
    texts: Sequence[TextEdit],
    index: Path | None,
    previous: Journal | None,
) -> list[Target]:
    """Make all of it so; the targets that changed anything. Raises with everything as it was.

    `previous` is the journal of an earlier try of the same commit.
    """
    application = _Application(workspace, targets, texts, index)
    return application.run(previous)


class _Application:
    def __init__(
        self, workspace: Workspace, targets: Sequence[Target], texts: Sequence[TextEdit], index: Path | None
    ) -> None:
        self.workspace = workspace
        self.repo = workspace.repo
        self.targets = list(targets)
        self.texts = texts
        self.index = index
        self.databases: dict[bytes, Pointer] = {}
        self.before: dict[bytes, Entry] = {}

    def run(self, previous: Journal | None) -> list[Target]:
        self._store()
        self.before = {entry.path: entry for entry in self.repo.staged(self._paths(), self.index)}
        self.targets = [target for target in self.targets if not self._is_up_to_date(target)]
        if not self.targets and not self.texts:
            return []
        self._refuse_overwriting()
        record = self._journal()
        record = journal.merged(previous, record) if previous is not None else record
        self._keep_databases(record, previous)
        journal.save(self.workspace, record)
        try:
            began = time.time()
            self._place()
            removed = [each for target in self.targets for each in [*target.remove, *target.strays]]
            stage(self.repo, self._blobs(), removed, self.index, since=began)
            self._note_databases(record)
            record.staged = True
            journal.save(self.workspace, record)
        except BaseException:
            self._note_databases(record)
            recovery.undo(self.workspace, record, self.index)
            raise
        return self.targets

    def _store(self) -> None:
        """Put the new files and the databases into the store."""
        for target in self.targets:
            placements = [(path, p) for path, p in target.place.items() if p.source is not None]
            with self.workspace.store.writer(framed=True) as writer:
                sources = [p.source for _, p in placements if p.source is not None]
                for (path, placement), added in zip(placements, writer.add_files(sources), strict=True):
                    if added.pointer != placement.pointer:
                        raise DatasetError(f"{quote(path)}: the file changed while it was being read")
                self.databases[target.registration.database] = next(iter(writer.add_files([target.database]))).pointer

    def _paths(self) -> list[bytes]:
        """All paths of the index that may be changed."""
        found = [edit.path for edit in self.texts]
        for target in self.targets:
            found += [target.registration.index, target.registration.database]
            found += [*target.place, *target.remove, *target.strays]
        return found

    def _is_up_to_date(self, target: Target) -> bool:
        path = target.registration.database
        entry = self.before.get(path)
        same = entry is not None and entry.sha == self.repo.blob_id(self.databases[path].encode())
        on_disk = os.path.isfile(self.repo.absolute(path))
        return same and on_disk and not (target.place or target.remove or target.strays)

    def _refuse_overwriting(self) -> None:
        """Raise DatasetError where a file that nobody could bring back is in the way of one to be made."""
        known = pointers_of(self.repo, {entry.sha for entry in self.before.values()})
        for target in self.targets:
            self._refuse_wrong_kinds(target)
            for path, placement in target.place.items():
                on_disk = self.repo.absolute(path)
                if placement.source is None or not os.path.lexists(on_disk):
                    continue
                content = content_of(on_disk)
                entry = self.before.get(path)
                if content == placement.pointer or (
                    entry is not None and content == known.get(entry.sha, Pointer(EMPTY, 0))
                ):
                    continue
                if entry is not None or content is None or not self.workspace.store.has(content.oid):
                    raise DatasetError(
                        f"{quote(path)} was changed by hand, and {quote(target.registration.index)} makes it anew.\n"
                        f"Move your file away (or take it back: git checkout -- {quote(path)}), then commit again"
                    )

    def _refuse_wrong_kinds(self, target: Target) -> None:
        """Raise DatasetError where a folder stands for the database, or anything else for a field's folder."""
        registration = target.registration
        folders = {path[: path.index(b"/", len(registration.folder))] for path in target.place}
        wrong = [path for path in sorted(folders) if not _is_absent_or(os.path.isdir, self.repo.absolute(path))]
        if not _is_absent_or(os.path.isfile, self.repo.absolute(registration.database)):
            wrong.append(registration.database)
        if wrong:
            raise DatasetError(f"{quote(wrong[0])} is in the way of the dataset's own; rename or remove it")

    def _journal(self) -> Journal:
        """What is about to happen."""
        record = Journal(self.repo.head())
        for target in self.targets:
            registration = target.registration
            record.sources.append(Source(registration.index, self.before[registration.index].sha))
            pointers = {path: placement.pointer for path, placement in target.place.items()}
            pointers[registration.database] = self.databases[registration.database]
            for path, pointer in pointers.items():
                record.placed.append(self._placed(path, text(pointer), pointer.oid))
            for path in [*target.remove, *target.strays]:
                if path in self.before:
                    record.removed.append(Removed(path, self._staged(path)))
            record.kept.append(self._kept(registration.database, self.databases[registration.database].oid))
            if target.former is not None:
                record.kept.append(self._kept(target.former, None))
        for edit in self.texts:
            record.placed.append(self._placed(edit.path, edit.staged, None))
            record.texts.append(journal.Text(edit.path, edit.before, edit.after, edit.indexed))
        return record

    def _placed(self, path: bytes, text: bytes, oid: bytes | None) -> Placed:
        before = self._staged(path) if path in self.before else None
        return Placed(path, Staged(FILE, self.repo.blob_id(text)), before, oid)

    def _staged(self, path: bytes) -> Staged:
        return Staged(self.before[path].mode, self.before[path].sha)

    def _kept(self, database: bytes, becomes: bytes | None) -> Kept:
        return Kept(database, os.path.isfile(self.repo.absolute(database)), becomes)

    def _keep_databases(self, record: Journal, previous: Journal | None) -> None:
        """Copy the databases as they are now beside the journal; those of an earlier try are there already."""
        there = {each.path for each in previous.kept} if previous is not None else set()
        for number, database in enumerate(record.kept):
            if database.existed and database.path not in there:
                shutil.copyfile(self.repo.absolute(database.path), journal.copy_of(self.workspace, number))

    def _note_databases(self, record: Journal) -> None:
        """What became of the databases: one that another program has open is written by SQLite in its own way."""
        for number, database in enumerate(record.kept):
            if database.path in self.databases:
                record.kept[number] = replace_field(database, oid=self.databases[database.path].oid)
        for number, placed in enumerate(record.placed):
            if placed.path in self.databases:
                pointer = self.databases[placed.path]
                now = Staged(FILE, self.repo.blob_id(pointer.encode()))
                record.placed[number] = replace_field(placed, now=now, oid=pointer.oid)

    def _place(self) -> None:
        """The work tree's share."""
        for target in self.targets:
            for path, placement in target.place.items():
                on_disk = self.repo.absolute(path)
                if placement.source is not None:
                    os.makedirs(os.path.dirname(on_disk), exist_ok=True)
                    checkout.move(placement.source, on_disk)
                elif not os.path.lexists(on_disk):
                    os.makedirs(os.path.dirname(on_disk), exist_ok=True)
                    checkout.replace(on_disk, placement.pieces())
            self._place_database(target)
            for path in target.remove:
                self._remove(path, is_moved=path == target.former)
        for edit in self.texts:
            with open(self.repo.absolute(edit.path), "wb") as file:
                file.write(edit.after)

    def _remove(self, path: bytes, *, is_moved: bool) -> None:
        """Remove a file from the work tree, unless the user changed it: then it stays, untracked, and they are told."""
        on_disk = self.repo.absolute(path)
        if not os.path.isfile(on_disk):
            return
        content = content_of(on_disk)
        if not is_moved and (content is None or self.repo.blob_id(text(content)) != self.before[path].sha):
            self.workspace.messages.warn(f"{quote(path)} was changed by hand: kept on disk, out of the commit")
            return
        os.unlink(on_disk)
        recovery.remove_empty_folders(self.workspace, path)

    def _place_database(self, target: Target) -> None:
        """Put the new database in place.

        One that another program has open in WAL mode is written through SQLite, which that program notices; its
        log would otherwise outlive the file it belongs to, and be replayed into the new one.
        """
        path = target.registration.database
        on_disk = Path(os.fsdecode(self.repo.absolute(path)))
        if on_disk == target.database:
            return
        if sidecars.is_open(on_disk):
            self._refuse_changed(target, on_disk)
            sidecars.copy_into(target.database, on_disk)
            with self.workspace.store.writer(framed=True) as writer:
                self.databases[path] = next(iter(writer.add_files([on_disk]))).pointer
            return
        temporary = on_disk.with_name(recovery.TEMPORARY_DATABASE)
        shutil.copyfile(target.database, temporary)
        with held(on_disk):
            self._refuse_changed(target, on_disk)
            temporary.replace(on_disk)

    def _refuse_changed(self, target: Target, on_disk: Path) -> None:
        """Raise DatasetError when another program wrote the database while the user's code ran."""
        if target.former is None and file_state(on_disk) != target.seen:
            raise DatasetError(f"{quote(target.registration.database)} was changed while index.py ran; commit again")

    def _blobs(self) -> list[Blob]:
        """The index blobs, each with the stat of its file where that has the very content."""
        blobs = []
        fresh = set()
        for target in self.targets:
            for path, placement in target.place.items():
                blobs.append(Blob(path, text(placement.pointer)))
                if placement.source is not None or content_of(self.repo.absolute(path)) == placement.pointer:
                    fresh.add(path)
            database = target.registration.database
            blobs.append(Blob(database, self.databases[database].encode()))
            fresh.add(database)
        for edit in self.texts:
            blobs.append(Blob(edit.path, edit.staged))
            if edit.staged == edit.after:
                fresh.add(edit.path)
        stats = {path: os.lstat(self.repo.absolute(path)) for path in fresh}
        return [replace(blob, stat=stats.get(blob.path)) for blob in blobs]


def _is_absent_or(kind: Callable[[bytes], bool], path: bytes) -> bool:
    return not os.path.lexists(path) or kind(path)
