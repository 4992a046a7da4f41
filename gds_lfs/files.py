"""Files written so that they are whole, and stay so after a power cut."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["give_name", "make_below", "sync_folder", "write_all"]

T = TypeVar("T")


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte; raises OSError."""
    written = os.write(descriptor, data)
    if written < len(data):
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def make_below(root: str | Path, path: str, make: Callable[[str], T]) -> T:
    """What `make(path)` gives, after the folders that the path needs were made if they were missing: those below `root`
    alone, which may be a drive that is gone. Raises OSError.
    """
    try:
        return make(path)
    except FileNotFoundError:
        folder = os.fspath(root)
        for name in os.path.relpath(os.path.dirname(path), root).split(os.sep):
            folder = os.path.join(folder, name)
            with suppress(FileExistsError):
                os.mkdir(folder)
        return make(path)


def give_name(descriptor: int, path: str | bytes) -> None:
    """Name a file that was opened with O_TMPFILE, as open(2) tells to. Raises OSError."""
    # With no folder's descriptor Python calls link(2), which follows nothing; an absolute path has no use for it.
    os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)


def sync_folder(folder: str | Path) -> None:
    """Make a rename in the folder outlast a power cut, where the platform knows how. Raises OSError."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
