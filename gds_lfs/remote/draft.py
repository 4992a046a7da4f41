"""An object that is written piece by piece, and gets its key when it is complete: a pack's is the hash of its bytes."""

from __future__ import annotations

import io
import tempfile
from typing import TYPE_CHECKING, BinaryIO, Protocol

from gds_lfs.errors import StoreWriteError
from gds_lfs.files import write_all

if TYPE_CHECKING:
    from pathlib import Path

    from gds_lfs.remote.base import Remote, Source

__all__ = ["Draft", "Spooled"]

#: Bytes that are held until they are worth a file.
IN_MEMORY = 2 << 20


class Draft(Protocol):
    """Nobody sees anything of it before `put`."""

    def write(self, data: bytes | memoryview) -> None:
        """Append all of the bytes. Raises GitDatasetsError where they cannot be kept."""

    def put(self, key: str) -> None:
        """Store what was written, as the remote's `put` does; after a TransientRemoteError it may be called again."""

    def close(self) -> None:
        """Give up what the draft holds on to; what was put stays."""


class Spooled:
    """A draft that is kept here: in memory as long as it is small, then in a nameless file of `scratch`, so that a
    process that is killed leaves nothing behind.
    """

    def __init__(self, remote: Remote, scratch: Path) -> None:
        self._remote = remote
        self._scratch = scratch
        self._memory = io.BytesIO()
        self._file: BinaryIO | None = None

    def write(self, data: bytes | memoryview) -> None:
        """Raises StoreWriteError where the disk does not take it."""
        if self._file is None:
            self._memory.write(data)
            if self._memory.tell() > IN_MEMORY:
                held, self._memory = self._memory.getvalue(), io.BytesIO()
                self._spill(held)
        else:
            self._spill(data)

    def put(self, key: str) -> None:
        """Raises RemoteError."""
        source: Source = self._file or self._memory.getvalue()
        self._remote.put(key, source)

    def close(self) -> None:
        """Forget it."""
        self._memory.close()
        if self._file is not None:
            self._file.close()

    def _spill(self, data: bytes | memoryview) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._scratch, buffering=0)  # noqa: SIM115  # `close` closes it
            write_all(self._file.fileno(), data)
        except OSError as error:
            raise StoreWriteError(
                f"cannot put a pack together in {self._scratch}: {error.strerror or error}. "
                "Make room there, then push again."
            ) from error
