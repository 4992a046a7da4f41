"""Folders that sessions of the agent have for themselves, and what becomes of those whose session was killed.

::

    <parent>/git-datasets-<pid>-<random>/session.lock    held as long as the session lives, and its own content

A lock that can be taken belongs to nobody alive, so the next session takes the folder over with all that is in it. A
folder without one is of a session that begins or ends, or of where there are no locks; its age tells when it is left.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gds_lfs.lock import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["SessionFolder"]

_LOCK = "session.lock"
#: Seconds after which a folder that nobody holds is removed.
ABANDONED = 2 * 24 * 3600


class SessionFolder:
    """A folder that is nobody else's until `close`. `SessionFolder.open` gives one."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, parent: Path) -> SessionFolder:
        """The one that the last session under `parent` left, if one did, or a new one. Raises OSError."""
        parent.mkdir(parents=True, exist_ok=True)
        folder = cls._left(parent) or cls._new(parent)
        _sweep(parent)
        return folder

    @classmethod
    def _left(cls, parent: Path) -> SessionFolder | None:
        for _, path in sorted(_folders(parent), reverse=True):
            lock = FileLock(path / _LOCK)
            with suppress(OSError):
                if lock.take():
                    return cls(path, lock)
        return None

    @classmethod
    def _new(cls, parent: Path) -> SessionFolder:
        while True:
            path = parent / f"git-datasets-{os.getpid()}-{os.urandom(4).hex()}"
            path.mkdir()
            lock = FileLock(path / _LOCK)
            try:
                lock.create()
            except FileExistsError:  # another session took it over in the moment before
                continue
            except OSError:  # no locks here: it is told from others by its name, and goes by its age if need be
                pass
            return cls(path, lock)

    def close(self, *, keep: bool = False) -> None:
        """Give it back: to be removed, or to `keep` for the next session."""
        if keep:
            self._lock.release()
            return
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.remove()  # some systems remove no file that is open, nor its folder
        with suppress(OSError):
            self.path.rmdir()


def _folders(parent: Path) -> Iterator[tuple[float, Path]]:
    """The folders of all sessions under `parent`, with when they were last written to."""
    for path in parent.glob("git-datasets-*-*"):
        with suppress(OSError):
            yield path.stat().st_mtime, path


def _sweep(parent: Path) -> None:
    """Remove what was left long ago: only one folder is taken over at a time."""
    for written, path in _folders(parent):
        if written < time.time() - ABANDONED:
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a folder, unless a session holds it."""
    lock = FileLock(path / _LOCK)
    with suppress(OSError):
        if not lock.take() and (path / _LOCK).exists():
            return
    SessionFolder(path, lock).close()
