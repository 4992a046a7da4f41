"""A draft in the very folder that it is put into: a file without a name, which gets one when it is complete.

Nothing is copied then, and nothing is left of a process that is killed (O_TMPFILE and linkat, open(2)). Only Linux has
it, and only some of its file systems.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from gds_lfs.files import give_name, make_below, sync_folder, write_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gds_lfs.errors import RemoteError
    from gds_lfs.remote.base import Remote

__all__ = ["Nameless"]


class Nameless:
    """A draft (see draft.py) in the folder `root` of a remote. `failed` words an error.

    Raises OSError where there can be none.
    """

    def __init__(self, remote: Remote, root: Path, failed: Callable[[OSError], RemoteError]) -> None:
        self._remote = remote
        self._root = root
        self._failed = failed
        self._descriptor = os.open(root, os.O_TMPFILE | os.O_RDWR, 0o666)

    def write(self, data: bytes | memoryview) -> None:
        """Raises RemoteError."""
        try:
            write_all(self._descriptor, data)
        except OSError as error:
            raise self._failed(error) from error

    def put(self, key: str) -> None:
        """Raises RemoteError."""
        try:
            os.fsync(self._descriptor)  # what cannot be flushed cannot be copied either
        except OSError as error:
            raise self._failed(error) from error
        target = os.path.join(self._root, *key.split("/"))
        try:
            make_below(self._root, target, self._link)
        except OSError:  # it is there, or this file system gives no names: `put` knows
            with open(self._descriptor, "rb", closefd=False) as file:
                self._remote.put(key, file)

    def close(self) -> None:
        """Forget it, unless it has a name."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):  # what has a name is flushed
                os.close(descriptor)

    def _link(self, target: str) -> None:
        give_name(self._descriptor, target)
        with suppress(OSError):
            sync_folder(os.path.dirname(target))
