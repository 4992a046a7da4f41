"""git-lfs's side of the custom transfer protocol: our own push and fetch through somebody else's agent.

The agent program is started once for each operation, told `init`, then asked for one object after another, and ended by
`terminate`; messages are those of lfs_messages.py. A file that the agent hands over is checked against its hash before
it is taken into the store, and removed.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
from typing import IO, TYPE_CHECKING, NamedTuple

from gds_lfs.content.hashing import EMPTY
from gds_lfs.errors import MissingObjectError, RemoteError
from gds_lfs.transfer.download import DownloadReport
from gds_lfs.transfer.lfs_messages import (
    Complete,
    Download,
    Init,
    MalformedMessage,
    Progress,
    Terminate,
    Upload,
    decode_answer,
    decode_ready,
    encode,
)
from gds_lfs.transfer.queue import Meter, Silent
from gds_lfs.transfer.upload import UploadReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.store.local import LocalStore
    from gds_lfs.store.writer import StoreWriter
    from gds_lfs.transfer.lfs_messages import Request
    from gds_lfs.transfer.queue import Progress as Watcher

__all__ = ["AgentSession", "Wanted", "fetch", "push", "start"]

#: What agents say of an object that is not there: HTTP's codes, errno's ENOENT as in the protocol's own documentation,
#: and the exit code of ours.
_ABSENT = (404, 410, 2, MissingObjectError.exit_code)
#: Seconds that an agent has to end after `terminate`; git-lfs gives as many.
_PATIENCE = 30


class Wanted(NamedTuple):
    """A content to move: its size, and a path for messages."""

    size: int
    path: str


class AgentSession:
    """One conversation with an agent over a pair of streams, as the peer that asks."""

    def __init__(self, name: str, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._name = name
        self._stdin = stdin
        self._stdout = stdout

    def begin(self, operation: str, remote: str) -> None:
        """Say init. Raises RemoteError when the agent does not take it."""
        self._say(Init(operation, remote, False, 1))
        try:
            ready = decode_ready(self._line())
        except MalformedMessage as error:
            raise RemoteError(f"{self._name}: {error}") from error
        if ready.error is not None:
            raise RemoteError(f"{self._name}: {ready.error.message} (code {ready.error.code})")

    def ask(self, request: Upload | Download) -> Iterator[Progress | Complete]:
        """One object: what the agent says until it is complete. Raises RemoteError when it breaks the protocol."""
        self._say(request)
        while True:
            try:
                answer = decode_answer(self._line())
            except MalformedMessage as error:
                raise RemoteError(f"{self._name}: {error}") from error
            if answer.oid != request.oid:
                raise RemoteError(f"{self._name} speaks of {answer.oid!r} where it was asked for {request.oid}")
            yield answer
            if isinstance(answer, Complete):
                return

    def end(self) -> None:
        """Say terminate; an agent that has gone is no loss by then."""
        with contextlib.suppress(RemoteError):
            self._say(Terminate())

    def _say(self, request: Request) -> None:
        try:
            self._stdin.write(encode(request))
            self._stdin.flush()
        except OSError as error:
            raise self._gone() from error

    def _line(self) -> bytes:
        line = self._stdout.readline()
        if not line.endswith(b"\n"):
            raise self._gone()
        return line

    def _gone(self) -> RemoteError:
        return RemoteError(f"{self._name} ended in the middle of a transfer; run it by hand to see why")


@contextlib.contextmanager
def start(program: str, operation: str, remote: str, folder: Path) -> Iterator[AgentSession]:
    """Run an agent (a command line as in git's config) in `folder` for one operation. Raises RemoteError."""
    try:
        command = shlex.split(program)
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except (OSError, ValueError, IndexError) as error:
        raise RemoteError(
            f"datasets.transferagent is {program!r}, which cannot be started: {getattr(error, 'strerror', error)}"
        ) from error
    assert process.stdin is not None
    assert process.stdout is not None
    session = AgentSession(os.path.basename(command[0]), process.stdin, process.stdout)
    try:
        session.begin(operation, remote)
        yield session
        session.end()
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def push(
    store: LocalStore,
    session: AgentSession,
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
    with Meter(progress or Silent(), "Uploading", total, len(wanted)) as meter:
        for oid, item in wanted.items():
            with tempfile.NamedTemporaryFile(dir=scratch) as file:
                file.writelines(store.pieces(oid))
                file.flush()
                for answer in session.ask(Upload(oid.hex(), item.size, file.name)):
                    _check(answer, item.path)
            meter.advance(item.size, 1)
        meter.complete()
    return UploadReport(files=len(wanted), bytes_sent=total)


def fetch(
    store: LocalStore, session: AgentSession, wanted: Mapping[Oid, Wanted], progress: Watcher | None = None
) -> DownloadReport:
    """Have the agent bring contents that the store lacks. What it has not is in the report.

    Raises RemoteError for what else kept some from coming, in the agent's own words, after all others have come.
    """
    report = DownloadReport()
    absent = store.missing(wanted)
    todo = {oid: item for oid, item in wanted.items() if oid in absent}
    total = sum(item.size for item in todo.values())
    refused: list[RemoteError] = []
    with Meter(progress or Silent(), "Downloading", total, len(todo)) as meter, store.writer(framed=True) as writer:
        for oid, item in todo.items():
            try:
                _fetch_one(writer, session, oid, item, report)
            except _RefusedError as error:
                refused.append(error)
            meter.advance(item.size, 1)
        meter.complete()
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise RemoteError(f"{refused[0]}{more}")
    return report


class _RefusedError(RemoteError):
    """The agent cannot do one object, and said why."""


def _fetch_one(writer: StoreWriter, session: AgentSession, oid: Oid, item: Wanted, report: DownloadReport) -> None:
    path = None
    for answer in session.ask(Download(oid.hex(), item.size)):
        if isinstance(answer, Complete):
            if answer.error is not None and answer.error.code in _ABSENT:
                report.missing[oid] = item.path
                return
            _check(answer, item.path)
            path = answer.path
    if path is None:
        raise _RefusedError(f"{item.path}: the agent names no file that it is in, and no error either")
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


def _check(answer: Progress | Complete, path: str) -> None:
    if isinstance(answer, Complete) and answer.error is not None:
        raise _RefusedError(f"{path}: the agent says: {answer.error.message} (code {answer.error.code})")
