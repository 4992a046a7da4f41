"""What a dataset's part of the index and of the work tree is to be, and what stands there now."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import oid_of_file
from gds_lfs.content.pointer import Pointer, held_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gds_lfs.dataset.reconcile import Result
    from gds_lfs.porcelain.setup_texts import Setup
    from gds_lfs.porcelain.tracking import Registration

FileState = tuple[int, int, int, int]


@dataclass(frozen=True)
class Placement:
    """A row's file: its pointer, and the spooled file that has its content, or else how to get it from the store."""

    pointer: Pointer
    source: Path | None
    pieces: Callable[[], Iterator[bytes]]


@dataclass
class Target:
    """What a dataset's part of the index is to be.

    `database` is to become the database's content; `result` is there when it is not the file that is there already.
    `remove` are paths to remove, `strays` entries that no row names, `restored` files to place that the user took out;
    `setup` is for the text files beside it.
    """

    registration: Registration
    setup: Setup
    database: Path
    result: Result | None
    place: dict[bytes, Placement] = field(default_factory=dict)
    remove: set[bytes] = field(default_factory=set)
    strays: list[bytes] = field(default_factory=list)
    restored: list[bytes] = field(default_factory=list)
    seen: FileState | None = None
    """How the database in the work tree looked when it was read."""
    former: bytes | None = None
    """The database's name until now, when the declaration gives it another one."""
    removed_rows: int = 0
    """The rows that were deleted with SQL since the last commit."""

    def summary(self) -> str:
        """One line about its rows; empty where nothing is known to have become of them."""
        if self.result is not None:
            return self.result.summary(self.removed_rows)
        if not self.removed_rows:
            return ""
        from gds_lfs.dataset.database import count_rows
        from gds_lfs.dataset.reconcile import Result

        return Result(self.database, rows=count_rows(self.database)).summary(self.removed_rows)


def file_state(database: Path) -> FileState | None:
    """What changes when a database in the work tree is written: of its file, and the size of its `-wal`.

    Nothing is opened: to close a file would drop the locks that SQLite holds on it for this process.
    """
    try:
        stat = database.stat()
        with suppress(FileNotFoundError):
            return stat.st_ino, stat.st_size, stat.st_mtime_ns, Path(f"{database}-wal").stat().st_size
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, 0


def text(pointer: Pointer) -> bytes:
    """What git holds for a content: its pointer; an empty file is an empty blob."""
    return pointer.encode() if pointer.size else b""


def content_of(file: bytes) -> Pointer | None:
    """What a file of the work tree holds, or points to; None for what is no file."""
    if not os.path.isfile(file):
        return None
    return held_by(file) or Pointer(oid_of_file(file), os.stat(file).st_size)
