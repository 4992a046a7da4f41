"""Conversations with somebody else's transfer agent, as the peer that asks: git-lfs's side of its protocol.

An agent process is told `init`, then asked for one object after another, and ended by `terminate`; messages are those
of lfs_messages.py. Several processes of one agent work side by side, as those that git-lfs starts do; one more is
started when all others are busy.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import time
from typing import IO, TYPE_CHECKING

from gds_lfs.errors import RemoteError
from gds_lfs.transfer.lfs_messages import (
    Complete,
    Init,
    MalformedMessage,
    Terminate,
    decode_answer,
    decode_ready,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from gds_lfs.transfer.lfs_messages import Download, Request, Upload

__all__ = ["AgentSession", "Agents", "start"]

#: Seconds that agents have to end after `terminate`; git-lfs gives as many.
_PATIENCE = 30


class AgentSession:
    """One conversation with an agent over a pair of streams, as the peer that asks."""

    def __init__(self, name: str, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._name = name
        self._stdin = stdin
        self._stdout = stdout

    def begin(self, operation: str, remote: str, count: int = 1) -> None:
        """Say init; of `count` sessions at most this is one. Raises RemoteError when the agent does not take it."""
        self._say(Init(operation, remote, count > 1, count))
        try:
            ready = decode_ready(self._line())
        except MalformedMessage as error:
            raise RemoteError(f"{self._name}: {error}") from error
        if ready.error is not None:
            raise RemoteError(f"{self._name}: {ready.error.message} (code {ready.error.code})")

    def ask(self, request: Upload | Download, heard: Callable[[int], None]) -> Complete:
        """One object, until it is complete; `heard` gets how many more bytes have moved. Raises RemoteError when the
        agent breaks the protocol.
        """
        self._say(request)
        while True:
            try:
                answer = decode_answer(self._line())
            except MalformedMessage as error:
                raise RemoteError(f"{self._name}: {error}") from error
            if answer.oid != request.oid:
                raise RemoteError(f"{self._name} speaks of {answer.oid!r} where it was asked for {request.oid}")
            if isinstance(answer, Complete):
                return answer
            heard(answer.bytes_since_last)

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


class Agents:
    """The processes of one agent, for as many threads as there may be of them."""

    def __init__(self, command: Sequence[str], operation: str, remote: str, folder: Path, count: int) -> None:
        self._command = command
        self._operation = operation
        self._remote = remote
        self._folder = folder
        self.count = count
        self._idle: list[AgentSession] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    @contextlib.contextmanager
    def session(self) -> Iterator[AgentSession]:
        """One that nobody else speaks with. Raises RemoteError where another one is needed and will not start.

        One that was left with an error is not spoken with any more.
        """
        try:
            session = self._idle.pop()
        except IndexError:
            session = self._start()
        yield session
        self._idle.append(session)

    def _start(self) -> AgentSession:
        try:
            process = subprocess.Popen(self._command, cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except (OSError, ValueError) as error:
            raise _cannot_start(shlex.join(self._command), getattr(error, "strerror", None) or error) from error
        self._processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        session = AgentSession(os.path.basename(self._command[0]), process.stdin, process.stdout)
        session.begin(self._operation, self._remote, self.count)
        return session

    def end(self) -> None:
        """Say terminate to those that are not in the middle of something."""
        for session in self._idle:
            session.end()

    def close(self) -> None:
        """Wait until all have ended, and see to it that they do."""
        for process in self._processes:
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with contextlib.suppress(OSError):
                    stream.close()
        deadline = time.monotonic() + _PATIENCE
        for process in self._processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def start(program: str, operation: str, remote: str, folder: Path, count: int = 1) -> Iterator[Agents]:
    """An agent (a command line as in git's config), run in `folder` for one operation, in up to `count` processes.

    Raises RemoteError when it cannot be started or refuses.
    """
    try:
        command = shlex.split(program)
    except ValueError as error:
        raise _cannot_start(program, error) from error
    if not command:
        raise _cannot_start(program, "it is empty")
    agents = Agents(command, operation, remote, folder, count)
    try:
        with agents.session():  # what keeps it from starting is told before anything is done
            pass
        yield agents
        agents.end()
    finally:
        agents.close()


def _cannot_start(program: str, why: object) -> RemoteError:
    return RemoteError(f"datasets.transferagent is {program!r}, which cannot be started: {why}")
