"""What carries an agent's messages: one pair of streams, or the pipes of all agents of one git-lfs.

Only whole lines are handed on. A stream that ends, with or without `terminate`, ends its conversation; when all have
ended, so does the loop. Answers are written at once.
"""

from __future__ import annotations

import os
import selectors
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from gds_lfs.transfer.agent import Agent, Conversation, State
from gds_lfs.transfer.rendezvous import Meeting, release

if TYPE_CHECKING:
    import socket

__all__ = ["serve", "serve_all"]

#: Seconds without a message after which what has come is dealt with.
PAUSE = 0.01
_PIPE = 1 << 16


def serve(agent: Agent, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """One conversation over two streams, until `terminate` or the end of either."""

    def send(data: bytes) -> None:
        stdout.write(data)
        stdout.flush()

    conversation = agent.join(send)
    with suppress(BrokenPipeError):
        while conversation.state is not State.OVER and (line := stdin.readline()):
            if line.strip():
                agent.receive(conversation, line)
            if agent.waits:
                agent.pause()
    agent.leave(conversation)


def serve_all(agent: Agent, stdin: int, stdout: int, meeting: Meeting) -> None:
    """The conversation of this process and those of the agents that join it, until all have ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(meeting, selectors.EVENT_READ, meeting)
        _Line(agent, selector, stdin, stdout, None)
        while len(selector.get_map()) > 1:
            ready = selector.select(PAUSE if agent.waits else None)
            for key, _ in ready:
                if isinstance(key.data, Meeting):
                    joined = meeting.accept()
                    if joined is not None:
                        _Line(agent, selector, *joined)
                else:
                    key.data.read()
            if not ready:
                agent.pause()


class _Line:
    """One of several conversations, with the descriptors that carry it."""

    def __init__(
        self,
        agent: Agent,
        selector: selectors.BaseSelector,
        stdin: int,
        stdout: int,
        connection: socket.socket | None,
    ) -> None:
        self._agent = agent
        self._selector = selector
        self._stdin = stdin
        self._stdout = stdout
        self._connection = connection
        self._rest = b""
        self._conversation: Conversation = agent.join(self._send)
        selector.register(stdin, selectors.EVENT_READ, self)

    def read(self) -> None:
        """Take in what has come."""
        data = os.read(self._stdin, _PIPE)
        if not data:
            self._end()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._agent.receive(self._conversation, line)
            if self._conversation.state is State.OVER:
                self._end()
                return

    def _send(self, data: bytes) -> None:
        # Whoever does not read any more will not ask any more: the end of its stdin says so.
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._stdout, data) :]

    def _end(self) -> None:
        self._agent.leave(self._conversation)
        self._selector.unregister(self._stdin)
        os.close(self._stdin)
        os.close(self._stdout)
        if self._connection is not None:
            release(self._connection)
