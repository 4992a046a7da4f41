"""Our own push and fetch through somebody else's transfer agent (lfs_session.py).

A file that the agent hands over is checked against its hash before it is taken into the store, and removed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from typing import TYPE_CHECKING, NamedTuple, final

from gds_lfs.content.hashing import EMPTY
from gds_lfs.errors import MissingObjectError, RemoteError
from gds_lfs.transfer.download import DownloadReport
from gds_lfs.transfer.lfs_messages import Download, Upload
from gds_lfs.transfer.queue import Meter, Silent, run
from gds_lfs.transfer.upload import UploadReport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.store.local import LocalStore
    from gds_lfs.store.writer import StoreWriter
    from gds_lfs.transfer.lfs_messages import Complete
    from gds_lfs.transfer.lfs_session import Agents
    from gds_lfs.transfer.queue import Progress as Watcher

__all__ = ["Wanted", "fetch", "push"]

#: What agents say of an object that is not there: HTTP's codes, errno's ENOENT as in the protocol's own documentation,
#: and the exit code of ours.
_ABSENT = (404, 410, 2, MissingObjectError.exit_code)


class Wanted(NamedTuple):
    """A content to move: its size, and a path for messages."""

    size: int
    path: str


def push(
    store: LocalStore,
    agents: Agents,
    wanted: Mapping[Oid, Wanted],
    scratch: Path,
    progress: Watcher | None = None,
) -> UploadReport:
    """Have the agent send contents. Raises MissingObjectError before anything is sent, and RemoteError."""
    wanted = {oid: item for oid, item in wanted.items() if oid != EMPTY}
    absent = store.missing(wanted)
    if absent:
        oid = next(iter(absent))
        raise MissingObjectError(f"{wanted[oid].path}: its content (sha256:{oid.hex()}) is not here", oid)
    total = sum(item.size for item in wanted.values())
    with _Share(progress, "Uploading", total, len(wanted)) as share:

        def send(job: tuple[Oid, Wanted]) -> None:
            oid, item = job
            with tempfile.NamedTemporaryFile(dir=scratch) as file:
                file.writelines(store.pieces(oid))
                file.flush()
                _ask(agents, Upload(oid.hex(), item.size, file.name), item, share)

        run(wanted.items(), send, workers=agents.count, on_done=lambda _job, _none: None)
    return UploadReport(files=len(wanted), bytes_sent=total)


def fetch(
    store: LocalStore, agents: Agents, wanted: Mapping[Oid, Wanted], progress: Watcher | None = None
) -> DownloadReport:
    """Have the agent bring contents that the store lacks. What it has not is in the report.

    Raises RemoteError for what else kept some from coming, in the agent's own words, after all others have come.
    """
    report = DownloadReport()
    absent = store.missing(wanted)
    todo = {oid: item for oid, item in wanted.items() if oid in absent}
    refused: list[Exception] = []

    def failed(_: object, error: Exception) -> None:
        if not isinstance(error, _RefusedError):
            raise error
        refused.append(error)

    total = sum(item.size for item in todo.values())
    with _Share(progress, "Downloading", total, len(todo)) as share, store.writer(framed=True) as writer:

        def bring(job: tuple[Oid, Wanted]) -> str | None:
            return _bring(agents, *job, share)

        def done(job: tuple[Oid, Wanted], path: str | None) -> None:
            _take(writer, report, *job, path)

        run(todo.items(), bring, workers=agents.count, on_done=done, on_failed=failed)
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise RemoteError(f"{refused[0]}{more}")
    return report


@final
class _Share:
    """Progress that several threads make."""

    def __init__(self, progress: Watcher | None, what: str, total: int, items: int) -> None:
        self._meter = Meter(progress or Silent(), what, total, items)
        self._lock = threading.Lock()

    def __enter__(self) -> _Share:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._meter:
            if kind is None:
                self._meter.complete()

    def advance(self, size: int, items: int) -> None:
        """So much more is done."""
        with self._lock:
            self._meter.advance(size, items)


class _RefusedError(RemoteError):
    """The agent cannot do one object, and said why."""


def _ask(agents: Agents, request: Upload | Download, item: Wanted, share: _Share) -> Complete:
    left = item.size

    def heard(size: int) -> None:
        nonlocal left
        size = min(max(size, 0), left)
        left -= size
        share.advance(size, 0)

    with agents.session() as session:
        answer = session.ask(request, heard)
    share.advance(left, 1)  # an agent need not say what moves
    error = answer.error
    if error is not None and (isinstance(request, Upload) or error.code not in _ABSENT):
        raise _RefusedError(f"{item.path}: the agent says: {error.message} (code {error.code})")
    return answer


def _bring(agents: Agents, oid: Oid, item: Wanted, share: _Share) -> str | None:
    """The file that the agent put an object into; None if it has it not."""
    answer = _ask(agents, Download(oid.hex(), item.size), item, share)
    if answer.error is None and answer.path is None:
        raise _RefusedError(f"{item.path}: the agent names no file that it is in, and no error either")
    return answer.path


def _take(writer: StoreWriter, report: DownloadReport, oid: Oid, item: Wanted, path: str | None) -> None:
    """Put what the agent brought into the store, and into the report."""
    if path is None:
        report.missing[oid] = item.path
        return
    try:
        (added,) = writer.add_files([path])
    except OSError as error:
        raise RemoteError(f"{item.path}: the agent's {path}: {error.strerror}") from error
    with contextlib.suppress(OSError):
        os.unlink(path)
    if added.pointer.oid == oid:
        report.fetched.add(oid)
        report.bytes_received += item.size
    else:
        report.damaged[oid] = item.path
