"""What becomes of a hook's work when git has ended: the real index brought up to date, or all of it taken back.

Both go by the journal alone, since the index that the hook worked on may be gone; and both leave alone what somebody
has changed since.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import oid_of_file
from gds_lfs.content.pointer import recognise
from gds_lfs.errors import LockedError
from gds_lfs.git.index import IndexUpdate, UnsupportedIndexError, update_with_git, write_blobs
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import journal, sidecars
from gds_lfs.porcelain.checkout import replace
from gds_lfs.porcelain.journal import Journal, Staged
from gds_lfs.porcelain.staging import EXECUTABLE, FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gds_lfs.porcelain.workspace import Workspace


TEMPORARY_DATABASE = ".gds-database"
"""A database on its way into the work tree, beside its final name."""


def settle(workspace: Workspace) -> None:
    """Before any command: settle what an unfinished commit left, unless one is going on right now."""
    if workspace.repo.top is None or not journal.exists(workspace):
        return
    if os.path.lexists(f"{real_index(workspace)}.lock"):
        return
    with suppress(LockedError), journal.writing(workspace):
        recover(workspace, None)


def recover(workspace: Workspace, index: Path | None) -> Journal | None:
    """Settle a journal that is still there, `index` being the one that a hook was given.

    The commit was made: the real index is repaired. It was not, and every `index.py` is still as the hook saw it: the
    journal stays and is given back, for the next try to go on from. Otherwise the user has turned elsewhere, and the
    work is undone; what of it the real index keeps for now (git has it locked) is in the journal given back.
    """
    record = journal.load(workspace)
    if record is None:
        return None
    if record.staged and committed(workspace, record):
        repair_index(workspace, record)
        journal.drop(workspace)
        return None
    if record.staged and record.sources and all(_is_there(workspace, each, index) for each in record.sources):
        return record
    undo(workspace, record, index)
    if record.sources:
        names = " and ".join(quote(source.path) for source in record.sources)
        workspace.messages.note(f"the commit of {names} did not happen: what was made for it was taken back")
    left = _still_staged(workspace, record, index)
    if left is not None:
        journal.save(workspace, left)
    return left


def committed(workspace: Workspace, record: Journal) -> bool:
    """Whether HEAD is a new commit that holds what the hook staged."""
    if workspace.repo.head() in (None, record.head):
        return False
    found = {entry.path: entry.sha for entry in workspace.repo.tree("HEAD", [each.path for each in record.placed])}
    return all(found.get(each.path) == each.now.sha for each in record.placed)


def repair_index(workspace: Workspace, record: Journal) -> None:
    """Give the real index what a partial commit put into the commit alone: on all paths of the hook what HEAD has."""
    repo = workspace.repo
    paths = {each.path for entries in (record.placed, record.removed, record.earlier) for each in entries}
    wanted: dict[bytes, Staged | None] = dict.fromkeys(paths)
    wanted |= {entry.path: Staged(entry.mode, entry.sha) for entry in repo.tree("HEAD", sorted(paths))}
    texts = write_blobs(repo, [text.indexed for text in record.texts])
    wanted |= {text.path: Staged(FILE, sha) for text, sha in zip(record.texts, texts, strict=True)}
    oids = {each.path: each.oid for each in record.placed}
    _set_entries(workspace, None, {path: (entry, oids.get(path)) for path, entry in wanted.items()})


def undo(workspace: Workspace, record: Journal, index: Path | None) -> None:
    """Take back what the hook did to the index and the work tree, as far as nobody has changed it since."""
    _unstage(workspace, record, index)
    databases = {database.path for database in record.kept}
    back: dict[bytes, Staged] = {}
    for placed in record.placed:
        if placed.oid is None or placed.path in databases or not _holds(workspace, placed.path, placed.oid):
            continue
        if placed.before is not None:
            back[placed.path] = placed.before
        else:
            os.unlink(workspace.repo.absolute(placed.path))
            remove_empty_folders(workspace, placed.path)
    for number, database in enumerate(record.kept):
        _restore_database(workspace, database, journal.copy_of(workspace, number))
    for removed in record.removed:
        if removed.path not in databases and not os.path.lexists(workspace.repo.absolute(removed.path)):
            back[removed.path] = removed.before
    _write_back(workspace, back)
    for text in record.texts:
        on_disk = Path(os.fsdecode(workspace.repo.absolute(text.path)))
        if on_disk.is_file() and on_disk.read_bytes() == text.after:
            if text.before is None:
                on_disk.unlink()
            else:
                on_disk.write_bytes(text.before)
    journal.drop(workspace)


def remove_empty_folders(workspace: Workspace, path: bytes) -> None:
    """Remove the folders above `path` that are empty now, below the top of the work tree."""
    while path := path[: max(path.rfind(b"/"), 0)]:
        try:
            os.rmdir(workspace.repo.absolute(path))
        except OSError:
            return


def real_index(workspace: Workspace) -> Path:
    """The index of the work tree, whatever index git shows to a hook."""
    return workspace.repo.git_dir / "index"


def _is_there(workspace: Workspace, source: journal.Source, index: Path | None) -> bool:
    """Whether an `index.py` is still as the hook saw it: in the index of a commit, else staged or on disk."""
    if any(entry.sha == source.sha for entry in workspace.repo.staged([source.path], index)):
        return True
    file = Path(os.fsdecode(workspace.repo.absolute(source.path)))
    if index is not None or not file.is_file():
        return False
    filtered = b"--path=" + source.path
    return workspace.repo.run("hash-object", filtered, "--stdin", input=file.read_bytes()).strip() == source.sha


def _unstage(workspace: Workspace, record: Journal, index: Path | None) -> None:
    """Take the hook's entries out of an index that outlives the hook, where they are still the hook's."""
    now = {entry.path: entry for entry in workspace.repo.staged(index=index)}
    wanted: dict[bytes, tuple[Staged | None, bytes | None]] = {}
    for placed in [*record.placed, *record.earlier]:
        entry = now.get(placed.path)
        if entry is not None and entry.sha == placed.now.sha:
            wanted[placed.path] = placed.before, None
    for removed in record.removed if wanted else ():
        if removed.path not in now:
            wanted[removed.path] = removed.before, None
    _set_entries(workspace, index, wanted)


def _still_staged(workspace: Workspace, record: Journal, index: Path | None) -> Journal | None:
    """What an earlier try left in the real index while a hook has another one: for the next journal to repair."""
    if index is None or os.path.realpath(index) == os.path.realpath(real_index(workspace)):
        return None
    now = {entry.path: entry.sha for entry in workspace.repo.staged(index=real_index(workspace))}
    entries = [
        each
        for each in [*record.placed, *record.earlier]
        if now.get(each.path) == each.now.sha and each.before != each.now
    ]
    return Journal(record.head, earlier=entries, staged=True) if entries else None


def _set_entries(
    workspace: Workspace, index: Path | None, wanted: Mapping[bytes, tuple[Staged | None, bytes | None]]
) -> None:
    """Make the entries of an index so (None: absent), with the stat data of files that hold the content given."""
    repo = workspace.repo
    now = {entry.path: Staged(entry.mode, entry.sha) for entry in repo.staged(index=index)} if wanted else {}
    changes = {path: each for path, each in wanted.items() if now.get(path) != each[0]}
    if not changes:
        return
    try:
        with IndexUpdate(repo, index) as update:
            for path, (entry, oid) in changes.items():
                if entry is None:
                    update.remove(path)
                else:
                    update.set(path, entry.mode, entry.sha, _stat_if_ours(workspace, path, oid))
    except UnsupportedIndexError:
        gone = b"0" * len(repo.empty_tree)
        lines = [(each.mode, each.sha, path) if each else (0, gone, path) for path, (each, _) in changes.items()]
        update_with_git(repo, lines, index)


def _write_back(workspace: Workspace, files: Mapping[bytes, Staged]) -> None:
    """Write files as index entries have them; where a file's data is not here, its pointer."""
    texts = dict(workspace.repo.blobs({entry.sha for entry in files.values()}))
    for path, entry in files.items():
        text = texts.get(entry.sha, b"")
        pointer = recognise(text)
        here = pointer is not None and workspace.store.has(pointer.oid)
        target = workspace.repo.absolute(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        pieces = workspace.store.pieces(pointer.oid) if pointer is not None and here else iter([text])
        replace(target, pieces, executable=entry.mode == EXECUTABLE)


def _restore_database(workspace: Workspace, database: journal.Kept, copy: Path) -> None:
    """Put back a database as it was, unless it is no longer as the hook left it."""
    target = Path(os.fsdecode(workspace.repo.absolute(database.path)))
    target.with_name(TEMPORARY_DATABASE).unlink(missing_ok=True)
    untouched = _holds(workspace, database.path, database.oid) if database.oid else not os.path.lexists(target)
    if not untouched:
        return
    if not database.existed:
        target.unlink()
    elif copy.exists():
        if target.is_file() and sidecars.is_open(target):
            sidecars.copy_into(copy, target)
        else:
            temporary = target.with_name(TEMPORARY_DATABASE)
            shutil.copyfile(copy, temporary)
            temporary.replace(target)


def _holds(workspace: Workspace, path: bytes, oid: bytes) -> bool:
    """Whether the work-tree file has exactly this content."""
    try:
        return oid_of_file(workspace.repo.absolute(path)) == oid
    except OSError:
        return False


def _stat_if_ours(workspace: Workspace, path: bytes, oid: bytes | None) -> os.stat_result | None:
    """The file's stat when its content is what was staged; without it git compares the content itself."""
    try:
        stat = os.lstat(workspace.repo.absolute(path))
    except OSError:
        return None
    return stat if oid is not None and _holds(workspace, path, oid) else None
