"""A reconciliation carried out: store, journal, work tree, index, in this order.

What is stored before the journal harms nobody. From the journal on, an error is undone and the repository is as it
was; once the index has it all, the journal waits for post-commit.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import oid_of_file
from gds_lfs.content.pointer import MAX_SIZE, Pointer, recognise
from gds_lfs.errors import DatasetError
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import checkout, journal, sidecars
from gds_lfs.porcelain.journal import Journal, Placed, Removed
from gds_lfs.porcelain.staging import FILE, Blob, stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.setup_texts import TextEdit
    from gds_lfs.porcelain.tracking import Registration
    from gds_lfs.porcelain.workspace import Workspace


@dataclass(frozen=True)
class Placement:
    """A row's file: its pointer, and the spooled file that has its content, or else how to get it from the store."""

    pointer: Pointer
    source: Path | None
    pieces: Callable[[], Iterator[bytes]]


@dataclass
class Target:
    """What a dataset's part of the index is to be.

    `database` is to become the database's content, `replaced` tells that it is not the file that is there already;
    `remove` has the index entries of paths to remove; `strays` are entries that no row names.
    """

    database: Path
    replaced: bool
    place: dict[bytes, Placement] = field(default_factory=dict)
    remove: dict[bytes, Entry | None] = field(default_factory=dict)
    strays: list[bytes] = field(default_factory=list)
    texts: list[TextEdit] = field(default_factory=list)


def carry_out(workspace: Workspace, registration: Registration, target: Target, index: Path | None) -> bool:
    """Make it so; True if anything changed. Raises with everything as it was."""
    return _Application(workspace, registration, target, index).run()


class _Application:
    def __init__(self, workspace: Workspace, registration: Registration, target: Target, index: Path | None) -> None:
        self.workspace = workspace
        self.repo = workspace.repo
        self.registration = registration
        self.target = target
        self.index = index
        self.on_disk = Path(os.fsdecode(self.repo.absolute(registration.database)))

    def run(self) -> bool:
        target = self.target
        if target.strays:
            self._leave_out(target.strays)
        pointer = self._store()
        if self._is_up_to_date(pointer):
            return False
        previous = journal.load(self.workspace)
        record = self._journal(pointer, previous)
        if previous is None:
            journal.keep_database(self.workspace, self.on_disk if record.had_database else None)
        journal.save(self.workspace, record)
        try:
            began = time.time()
            pointer = self._place(pointer)
            written = stage(self.repo, self._blobs(pointer), list(target.remove), self.index, since=began)
        except BaseException:
            journal.undo(self.workspace, record)
            raise
        oids = {placed.path: placed.oid for placed in record.placed}
        oids[os.fsdecode(self.registration.database)] = pointer.oid.hex()
        record.placed = [
            Placed(name, blob.mode, sha.decode(), oids.get(name))
            for blob, sha in written
            for name in [os.fsdecode(blob.path)]
        ]
        record.staged = True
        journal.save(self.workspace, record)
        return True

    def _leave_out(self, strays: list[bytes]) -> None:
        self.workspace.messages.warn_paths(
            f"no row of {quote(self.registration.index)} names these files, so they are left out of the commit:",
            map(quote, strays),
            "To add rows, return them from an ingest.",
        )
        stage(self.repo, [], strays, self.index)

    def _store(self) -> Pointer:
        """Put the new files and the database into the store; the database's pointer."""
        placements = [(path, p) for path, p in self.target.place.items() if p.source is not None]
        with self.workspace.store.writer(framed=True) as writer:
            sources = [p.source for _, p in placements if p.source is not None]
            for (path, placement), added in zip(placements, writer.add_files(sources), strict=True):
                if added.pointer != placement.pointer:
                    raise DatasetError(f"{quote(path)}: the file changed while it was being read")
            return next(iter(writer.add_files([self.target.database]))).pointer

    def _is_up_to_date(self, pointer: Pointer) -> bool:
        target = self.target
        entries = list(self.repo.staged([self.registration.database], self.index))
        found = dict(self.repo.blobs(entry.sha for entry in entries))
        same = bool(entries) and found.get(entries[0].sha) == pointer.encode() and self.on_disk.is_file()
        return same and not target.place and not target.remove and not target.texts

    def _journal(self, pointer: Pointer, previous: Journal | None) -> Journal:
        """What is about to happen. What an earlier try of the same commit did is still to be undone or repaired."""
        repo, target = self.repo, self.target
        head = repo.head()
        entry = next(iter(repo.staged([self.registration.index], self.index)))
        oids = {os.fsdecode(path): p.pointer.oid.hex() for path, p in target.place.items()}
        oids[os.fsdecode(self.registration.database)] = pointer.oid.hex()
        removed = [Removed(os.fsdecode(path), old.mode, old.sha.decode()) for path, old in target.remove.items() if old]
        texts = {os.fsdecode(e.path): journal.Text(e.before, e.after, e.indexed) for e in target.texts}
        return Journal(
            head=head.decode() if head else None,
            index_path=os.fsdecode(self.registration.index),
            index_sha=entry.sha.decode(),
            database=os.fsdecode(self.registration.database),
            had_database=previous.had_database if previous else self.on_disk.is_file(),
            placed=[Placed(name, FILE, "", oid) for name, oid in oids.items()],
            removed=removed,
            texts={**texts, **(previous.texts if previous else {})},
        )

    def _place(self, pointer: Pointer) -> Pointer:
        """The work tree's share; gives the pointer of the database as it is on disk in the end."""
        for path, placement in self.target.place.items():
            on_disk = self.repo.absolute(path)
            if placement.source is not None:
                os.makedirs(os.path.dirname(on_disk), exist_ok=True)
                checkout.move(placement.source, on_disk)
            elif not os.path.lexists(on_disk):
                os.makedirs(os.path.dirname(on_disk), exist_ok=True)
                checkout.replace(on_disk, placement.pieces())
        for path, entry in self.target.remove.items():
            self._remove(path, entry)
        for edit in self.target.texts:
            with open(self.repo.absolute(edit.path), "wb") as file:
                file.write(edit.after)
        if not self.target.replaced and self.on_disk.is_file():
            return pointer
        return self._swap_database(pointer)

    def _remove(self, path: bytes, entry: Entry | None) -> None:
        """Remove a row's file, unless the user changed it: then it stays, untracked, and they are told."""
        on_disk = self.repo.absolute(path)
        if not os.path.isfile(on_disk):
            return
        with open(on_disk, "rb") as file:
            pointer = recognise(file.read(MAX_SIZE + 1)) or Pointer(oid_of_file(on_disk), os.stat(on_disk).st_size)
        text = pointer.encode() if pointer.size else b""
        if entry is not None and dict(self.repo.blobs([entry.sha])).get(entry.sha) != text:
            self.workspace.messages.warn(f"{quote(path)} was changed by hand: kept on disk, out of the commit")
            return
        os.unlink(on_disk)
        journal.remove_empty_folders(self.workspace, path)

    def _swap_database(self, pointer: Pointer) -> Pointer:
        """Put the new database in place.

        One that another program has open in WAL mode is written through SQLite, which that program notices; its
        log would otherwise outlive the file it belongs to, and be replayed into the new one.
        """
        new, on_disk = self.target.database, self.on_disk
        if on_disk.is_file() and Path(f"{on_disk}-shm").exists():
            sidecars.copy_into(new, on_disk)
            with self.workspace.store.writer(framed=True) as writer:
                return next(iter(writer.add_files([on_disk]))).pointer
        on_disk.parent.mkdir(parents=True, exist_ok=True)
        temporary = on_disk.with_name(".gds-database")
        shutil.copyfile(new, temporary)
        temporary.replace(on_disk)
        return pointer

    def _blobs(self, pointer: Pointer) -> list[Blob]:
        """The index blobs, each with the stat of its file where that has the very content."""
        blobs = [Blob(path, p.pointer.encode() if p.pointer.size else b"") for path, p in self.target.place.items()]
        fresh = {path for path, p in self.target.place.items() if p.source is not None or self._has(path, p.pointer)}
        blobs.append(Blob(self.registration.database, pointer.encode()))
        fresh.add(self.registration.database)
        for edit in self.target.texts:
            blobs.append(Blob(edit.path, edit.staged))
            if edit.staged == edit.after:
                fresh.add(edit.path)
        stats = {path: os.lstat(self.repo.absolute(path)) for path in fresh}
        return [replace(blob, stat=stats.get(blob.path)) for blob in blobs]

    def _has(self, path: bytes, pointer: Pointer) -> bool:
        try:
            return oid_of_file(self.repo.absolute(path)) == pointer.oid
        except OSError:
            return False
