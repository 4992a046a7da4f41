"""Advisory locks on files, between processes.

The operating system drops a lock with the process that holds it, so a lock that can be taken belongs to nobody alive.
(filelock does this too, but imports asyncio, which a command would pay for with 50 ms.)
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_POLL_SECONDS = 0.05


class FileLock:
    """A lock on a file of its own, held as long as this process lives or until `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def create(self) -> None:
        """Make the file, which must not exist, and hold it; raises OSError."""
        self._descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if not _lock(self._descriptor):  # someone who tidies up saw it in the moment before
            self.release()
            raise FileExistsError(f"{self._path} is in use")

    def take(self) -> bool:
        """Hold an existing file's lock unless someone else does, or the file has gone. Raises OSError for no locks."""
        try:
            descriptor = os.open(self._path, os.O_RDWR)
        except (FileNotFoundError, PermissionError):
            return False
        held = False
        try:
            held = _lock(descriptor) and self._is_at_its_path(descriptor)
        finally:
            if not held:
                os.close(descriptor)
        if held:
            self._descriptor = descriptor
        return held

    def _is_at_its_path(self, descriptor: int) -> bool:
        """Whether the file is still the one of its name: who removed it may have let another one be made."""
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def wait(self, seconds: float) -> bool:
        """Hold the lock of a file that is made where it is absent; False if others keep it. Raises OSError."""
        end = time.monotonic() + seconds
        self._path.touch()
        while not self.take():
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def release(self) -> None:
        """Let go; the file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Let go and remove the file."""
        if sys.platform == "win32":
            self.release()  # an open file cannot be removed there
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self.release()


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
