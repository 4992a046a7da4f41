"""What a commit hook did to the work tree and the index, written down until git has made the commit.

git runs pre-commit before it knows whether there will be a commit (an empty message, a later hook, or nothing to
commit may end it), and shows a partial commit (`git commit index.py`) a temporary index that the real one never
learns of. So before the hook touches a file it writes down what it is about to do, in `<git dir>/datasets-journal/`:
`journal.json`, and `0`, `1`, …, copies of the databases as they were. post-commit brings the real index up to date
and forgets the journal; whoever finds one later finishes or undoes it (see `recovery`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from gds_lfs.errors import LockedError
from gds_lfs.lock import FileLock

_LOCK = "lock"

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gds_lfs.porcelain.workspace import Workspace


class Staged(msgspec.Struct, frozen=True):
    """What an index entry holds: a mode and the id of a blob, in hex."""

    mode: int
    sha: bytes


class Placed(msgspec.Struct, frozen=True):
    """A path whose index entry the hook sets, and what it was before; `oid` is the content's id (none for a text)."""

    path: bytes
    now: Staged
    before: Staged | None
    oid: bytes | None = None


class Removed(msgspec.Struct, frozen=True):
    """A path that the hook takes out of the index and the work tree, with the entry it had."""

    path: bytes
    before: Staged


class Text(msgspec.Struct, frozen=True):
    """A text file of the work tree before and after, and what the real index is to hold of it."""

    path: bytes
    before: bytes | None
    after: bytes
    indexed: bytes


class Kept(msgspec.Struct, frozen=True):
    """A database in the work tree: whether a copy of it was kept (else there was none), and what the hook puts there
    (nothing, where the hook removes it).
    """

    path: bytes
    existed: bool
    oid: bytes | None


class Source(msgspec.Struct, frozen=True):
    """An `index.py` that the work is done for, and the blob it was."""

    path: bytes
    sha: bytes


class Journal(msgspec.Struct):
    """One hook's work, begun on the commit `head`. `staged` turns true when the index has all of it; `earlier` are
    entries that a try given up left in the real index.
    """

    head: bytes | None
    sources: list[Source] = []
    placed: list[Placed] = []
    removed: list[Removed] = []
    texts: list[Text] = []
    kept: list[Kept] = []
    earlier: list[Placed] = []
    staged: bool = False


def exists(workspace: Workspace) -> bool:
    return (_folder(workspace) / "journal.json").exists()


def load(workspace: Workspace) -> Journal | None:
    """The journal that a hook left, if any."""
    try:
        return msgspec.json.decode((_folder(workspace) / "journal.json").read_bytes(), type=Journal)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError:
        drop(workspace)  # written by another version
        return None


def save(workspace: Workspace, journal: Journal) -> None:
    """Write the journal in one step, on disk before the work it speaks of begins."""
    temporary = _folder(workspace) / "journal.tmp"
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(journal))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(_folder(workspace) / "journal.json")


def copy_of(workspace: Workspace, number: int) -> Path:
    """Where the copy of the journal's database of this number is."""
    return _folder(workspace) / str(number)


def drop(workspace: Workspace) -> None:
    """Forget the journal, inside `writing`: the commit is made, or its work undone."""
    # The journal goes first: without it, what is left of the folder means nothing.
    (_folder(workspace) / "journal.json").unlink(missing_ok=True)
    for file in _folder(workspace).iterdir():
        if file.name != _LOCK:
            file.unlink()


@contextmanager
def writing(workspace: Workspace) -> Iterator[None]:
    """While the journal is read and written and its work goes on, nobody else begins theirs, or takes it for abandoned.

    Raises LockedError while another commit is at it.
    """
    folder = _folder(workspace)
    folder.mkdir(exist_ok=True)
    lock = FileLock(folder / _LOCK)
    if not lock.wait(0):
        raise LockedError("another commit is under way in this work tree; try again when it has ended")
    try:
        yield
    finally:
        if exists(workspace):
            lock.release()
        else:
            lock.remove()
            with suppress(OSError):
                folder.rmdir()


def merged(old: Journal, new: Journal) -> Journal:
    """One journal for two tries of the same commit: what was before the first, and what is after the second."""
    texts = {each.path: each for each in old.texts}
    placed = {each.path: each for each in old.placed}
    removed = {each.path: each for each in [*old.removed, *new.removed]}
    kept = {each.path: each for each in old.kept}
    for text in new.texts:
        first = texts.get(text.path, text)
        texts[text.path] = replace(text, before=first.before)
    for each in new.placed:
        before = each.before if each.oid is None else placed.get(each.path, each).before
        placed[each.path] = replace(each, before=before)
    for gone in new.removed:
        placed.pop(gone.path, None)
    for database in new.kept:
        kept[database.path] = replace(kept.get(database.path, database), oid=database.oid)
    return Journal(
        new.head,
        list({each.path: each for each in [*old.sources, *new.sources]}.values()),
        list(placed.values()),
        [each for each in removed.values() if each.path not in placed],
        list(texts.values()),
        list(kept.values()),
        old.earlier + new.earlier,
    )


def _folder(workspace: Workspace) -> Path:
    return workspace.repo.git_dir / "datasets-journal"
