"""What a commit hook did to the work tree, until git has made the commit.

git runs pre-commit before it knows whether there will be a commit (an empty message, a later hook, or nothing to
commit may end it), and shows a partial commit (`git commit index.py`) a temporary index that the real one never
learns of. So before the hook touches a file it writes down what it is about to do, in
`<git dir>/datasets-journal/`: `journal.json`, and `database`, the database as it was. post-commit brings the real
index up to date and forgets the journal; whoever finds one later finishes or undoes it (see `recover`).
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from gds_lfs.content.hashing import oid_of_file
from gds_lfs.git.index import IndexUpdate, UnsupportedIndexError, update_with_git, write_blobs
from gds_lfs.porcelain.checkout import replace
from gds_lfs.porcelain.pointers import in_entries
from gds_lfs.porcelain.staging import EXECUTABLE, FILE

if TYPE_CHECKING:
    from pathlib import Path

    from gds_lfs.porcelain.pointers import PointerFile
    from gds_lfs.porcelain.workspace import Workspace


class Placed(msgspec.Struct, frozen=True):
    """A file that the hook wrote: its path, the index entry it staged, and the content's id (of a text, none)."""

    path: str
    mode: int
    sha: str
    oid: str | None = None


class Removed(msgspec.Struct, frozen=True):
    """A file that the hook removed: its path and the index entry it had."""

    path: str
    mode: int
    sha: str


class Text(msgspec.Struct, frozen=True):
    """A text file of the work tree before and after, and what the real index is to hold of it."""

    before: bytes | None
    after: bytes
    indexed: bytes


class Journal(msgspec.Struct):
    """One hook's work. `staged` turns true when the index has it too."""

    head: str | None
    index_path: str
    index_sha: str
    database: str
    had_database: bool
    staged: bool = False
    placed: list[Placed] = []
    removed: list[Removed] = []
    texts: dict[str, Text] = {}


def folder(workspace: Workspace) -> Path:
    return workspace.repo.git_dir / "datasets-journal"


def exists(workspace: Workspace) -> bool:
    return (folder(workspace) / "journal.json").exists()


def load(workspace: Workspace) -> Journal | None:
    """The journal that a hook left, if any."""
    try:
        return msgspec.json.decode((folder(workspace) / "journal.json").read_bytes(), type=Journal)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError:
        drop(workspace)  # written by another version, or cut short before anything was touched
        return None


def save(workspace: Workspace, journal: Journal) -> None:
    """Write the journal in one step, on disk before the work it speaks of begins."""
    place = folder(workspace)
    place.mkdir(exist_ok=True)
    temporary = place / "journal.tmp"
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(journal))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(place / "journal.json")


def keep_database(workspace: Workspace, database: Path | None) -> None:
    """Put a copy of the database as it is now beside the journal."""
    place = folder(workspace)
    place.mkdir(exist_ok=True)
    if database is not None:
        shutil.copyfile(database, place / "database")


def drop(workspace: Workspace) -> None:
    """Forget the journal: the commit is made, or its work undone."""
    shutil.rmtree(folder(workspace), ignore_errors=True)


def committed(workspace: Workspace, journal: Journal) -> bool:
    """Whether HEAD is a new commit that holds what the hook staged."""
    head = workspace.repo.head()
    if head is None or head.decode() == journal.head:
        return False
    names = [os.fsencode(placed.path) for placed in journal.placed[:1]] or [os.fsencode(journal.index_path)]
    shas = {entry.path: entry.sha.decode() for entry in workspace.repo.tree("HEAD", names)}
    expected = journal.placed[0].sha if journal.placed else journal.index_sha
    return shas.get(names[0]) == expected


def repair_index(workspace: Workspace, journal: Journal) -> None:
    """Give the real index the entries that a partial commit put into the commit alone."""
    repo = workspace.repo
    wanted = {os.fsencode(p.path): (p.mode, p.sha.encode()) for p in journal.placed}
    texts = write_blobs(repo, [text.indexed for text in journal.texts.values()])
    wanted |= {os.fsencode(path): (FILE, sha) for path, sha in zip(journal.texts, texts, strict=True)}
    now = {entry.path: (entry.mode, entry.sha) for entry in repo.staged()}
    behind = {path: entry for path, entry in wanted.items() if now.get(path) != entry}
    gone = [path for path in (os.fsencode(r.path) for r in journal.removed) if path in now and path not in wanted]
    if not behind and not gone:
        return
    oids = {os.fsencode(p.path): p.oid for p in journal.placed}
    try:
        with IndexUpdate(repo) as index:
            for path in gone:
                index.remove(path)
            for path, (mode, sha) in behind.items():
                index.set(path, mode, sha, _stat_if_ours(workspace, path, oids.get(path)))
    except UnsupportedIndexError:
        removals = [(0, b"0" * len(repo.empty_tree), path) for path in gone]
        update_with_git(repo, [*removals, *((mode, sha, path) for path, (mode, sha) in behind.items())])


def undo(workspace: Workspace, journal: Journal) -> None:
    """Take back what the hook did to the work tree, as far as nobody has changed it since."""
    repo = workspace.repo
    tracked = {file.path: file for file in in_entries(repo, repo.staged())}
    for placed in journal.placed:
        path = os.fsencode(placed.path)
        if placed.oid is None or placed.path == journal.database or not _holds(workspace, path, placed.oid):
            continue
        if path not in tracked:
            os.unlink(repo.absolute(path))
            remove_empty_folders(workspace, path)
        elif tracked[path].pointer.oid.hex() != placed.oid:
            restore(workspace, tracked[path])
    _restore_database(workspace, journal)
    for removed in journal.removed:
        file = tracked.get(os.fsencode(removed.path))
        if file is not None and not os.path.lexists(repo.absolute(file.path)):
            restore(workspace, file)
    for name, text in journal.texts.items():
        on_disk = repo.work_tree / name
        if on_disk.is_file() and on_disk.read_bytes() == text.after:
            if text.before is None:
                on_disk.unlink()
            else:
                on_disk.write_bytes(text.before)
    drop(workspace)


def restore(workspace: Workspace, file: PointerFile) -> None:
    """Write a file's content as the index has it; where its data is not here, its pointer."""
    target = workspace.repo.absolute(file.path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    here = workspace.store.has(file.pointer.oid)
    pieces = workspace.store.pieces(file.pointer.oid) if here else iter([file.pointer.encode()])
    replace(target, pieces, executable=file.entry.mode == EXECUTABLE)


def recover(workspace: Workspace, index: Path | None = None) -> Journal | None:
    """Settle a journal that is still there when a command begins.

    The commit was made: the real index is repaired. It was not, and `index.py` is still as the hook saw it: the
    journal stays and is given back, for the next try to go on from. Otherwise the user has turned elsewhere, and
    the work is undone.
    """
    journal = load(workspace)
    if journal is None:
        return None
    if journal.staged and committed(workspace, journal):
        repair_index(workspace, journal)
        drop(workspace)
        return None
    if journal.staged and _same_index_py(workspace, journal, index):
        return journal
    undo(workspace, journal)
    workspace.messages.note(f"the commit of {journal.index_path} did not happen: the files made for it were taken back")
    return None


def remove_empty_folders(workspace: Workspace, path: bytes) -> None:
    """Remove the folders above `path` that are empty now, below the top of the work tree."""
    while path := path[: max(path.rfind(b"/"), 0)]:
        try:
            os.rmdir(workspace.repo.absolute(path))
        except OSError:
            return


def _same_index_py(workspace: Workspace, journal: Journal, index: Path | None) -> bool:
    path = os.fsencode(journal.index_path)
    if index is not None:
        return any(e.sha.decode() == journal.index_sha for e in workspace.repo.staged([path], index))
    file = workspace.repo.work_tree / journal.index_path
    if not file.is_file():
        return False
    on_disk = workspace.repo.run("hash-object", f"--path={journal.index_path}", "--stdin", input=file.read_bytes())
    return on_disk.decode().strip() == journal.index_sha


def _restore_database(workspace: Workspace, journal: Journal) -> None:
    target = workspace.repo.work_tree / journal.database
    ours = next((placed.oid for placed in journal.placed if placed.path == journal.database), None)
    if ours is None or not _holds(workspace, os.fsencode(journal.database), ours):
        return
    if journal.had_database:
        shutil.copyfile(folder(workspace) / "database", target)
    else:
        target.unlink()


def _holds(workspace: Workspace, path: bytes, oid: str) -> bool:
    """Whether the work-tree file has exactly this content."""
    try:
        return oid_of_file(workspace.repo.absolute(path)).hex() == oid
    except OSError:
        return False


def _stat_if_ours(workspace: Workspace, path: bytes, oid: str | None) -> os.stat_result | None:
    """The file's stat when its content is what was staged; without it git compares the content itself."""
    try:
        stat = os.lstat(workspace.repo.absolute(path))
    except OSError:
        return None
    return stat if oid is not None and _holds(workspace, path, oid) else None
