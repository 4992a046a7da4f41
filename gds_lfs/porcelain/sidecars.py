"""The `-wal`, `-shm` and `-journal` files that SQLite leaves beside a database.

A left-over `-wal` or `-journal` is replayed into whatever database stands beside it when it is opened next: rows of
one version would come back in another (https://sqlite.org/wal.html, https://sqlite.org/lockingv3.html#hot_journals).
So a checkout sets them aside under a name it reports, and never deletes them; ignore rules keep them out of git.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.chunker import SQLITE_HEADER
from gds_lfs.errors import LockedError
from gds_lfs.git.paths import quote

if TYPE_CHECKING:
    from gds_lfs.git.repo import Repo
    from gds_lfs.porcelain.workspace import Workspace

SUFFIXES = (b"-wal", b"-shm", b"-journal")


def has_unsaved_rows(repo: Repo, path: bytes, head: bytes) -> bool:
    """Whether a database's write-ahead log holds anything, so that the file alone may be stale."""
    if repo.top is None or not head.startswith(SQLITE_HEADER):
        return False
    try:
        return os.stat(repo.absolute(path) + b"-wal").st_size > 0
    except OSError:
        return False


def fold(workspace: Workspace, path: bytes) -> bool:
    """Write the rows of a `-wal` file into its database before the file is read; True if there were any.

    Raises LockedError when another program keeps the database locked.
    """
    target = workspace.repo.absolute(path)
    try:
        if os.stat(target + b"-wal").st_size == 0:
            return False
        with open(target, "rb") as file:
            if file.read(len(SQLITE_HEADER)) != SQLITE_HEADER:
                return False
    except OSError:
        return False
    from gds_lfs.dataset.database import checkpoint

    return checkpoint(Path(os.fsdecode(target)))


def is_open(database: Path) -> bool:
    """Whether another program has a database open in WAL mode, so that its file must not be replaced."""
    return Path(f"{database}-shm").exists()


def copy_into(new: Path, database: Path) -> None:
    """Write `new` over a database that another program has open, as one transaction that it will notice.

    Raises LockedError when that program keeps it locked (https://sqlite.org/backup.html).
    """
    import sqlite3
    from contextlib import closing

    from gds_lfs.dataset.database import checkpoint

    try:
        with closing(sqlite3.connect(new)) as source, closing(sqlite3.connect(database, timeout=5)) as target:
            source.backup(target)
    except sqlite3.OperationalError as error:
        raise LockedError(f"{database.name} is locked by another program: close it, then try again") from error
    checkpoint(database)


def set_aside(workspace: Workspace, path: bytes) -> None:
    """Move the sidecars of a file that is about to be written anew out of its way.

    git removes the old file before it asks for the new content, so a file that is still there is not being checked
    out (`git archive`, `git cat-file --filters`), and its sidecars belong to whoever has it open.
    """
    repo = workspace.repo
    if repo.top is None:
        return
    target = repo.absolute(path)
    if not os.path.lexists(target):
        move_aside(workspace, path)


def move_aside(workspace: Workspace, path: bytes) -> None:
    """Rename the sidecars of `path` to the first free `<name>.aside-N` and say so."""
    target = workspace.repo.absolute(path)
    for suffix in SUFFIXES:
        if not os.path.lexists(target + suffix):
            continue
        number = 1
        while os.path.lexists(aside := target + suffix + b".aside-%d" % number):
            number += 1
        os.rename(target + suffix, aside)
        if suffix != b"-shm":
            workspace.messages.warn(
                f"{quote(path + suffix)} belonged to another version of the database: kept as "
                f"{quote(os.path.basename(aside))}"
            )
