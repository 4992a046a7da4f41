"""What carries an agent's messages: one pair of streams, or the pipes of all agents of one git-lfs.

Only whole lines are handed on. A stream that ends, with or without `terminate`, ends its conversation; when all have
ended, so does the loop. Answers are written at once.
"""

from __future__ import annotations

import os
import selectors
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from gds_lfs.transfer.conversation import Conversation, State
from gds_lfs.transfer.hangup import Watch, has_hung_up
from gds_lfs.transfer.rendezvous import release

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from gds_lfs.transfer.agent import Agent
    from gds_lfs.transfer.greeting import Greeting
    from gds_lfs.transfer.rendezvous import Meeting

__all__ = ["serve", "serve_all"]

#: Seconds without a message after which what has come is dealt with.
PAUSE = 0.01
_PIPE = 1 << 16


def serve(agent: Agent, stdin: BinaryIO, stdout: BinaryIO, greeting: Greeting) -> None:
    """One conversation over two streams that began with `greeting`, until `terminate` or the end of either. For a
    system whose pipes cannot be waited for: the end of a stream is noticed between two requests.
    """

    def send(data: bytes) -> None:
        stdout.write(data)
        stdout.flush()

    conversation = agent.join(send, greeted=greeting.answered)
    line = greeting.line
    with suppress(BrokenPipeError):
        while line:
            if line.strip():
                agent.receive(conversation, line)
            if agent.waits:
                agent.pause()
            line = b"" if conversation.state is State.OVER else stdin.readline()
    agent.leave(conversation)


def serve_all(
    agent: Agent,
    pipes: tuple[int, int],
    greeting: Greeting,
    meeting: Meeting | None,
    deserted: Callable[[], None],
) -> None:
    """The conversation of this process, over its stdin and stdout, and those of the agents that join it, if they can,
    until all have ended. All of them began with the same `greeting`.

    `deserted` is called once, in another thread, when the loop is busy and all who could hear an answer have gone.
    """
    # Keys only; a dictionary is copied in one go, whatever the thread that watches falls into.
    lines: dict[_Line, None] = {}

    def nobody() -> bool:
        return all(line.has_hung_up() for line in list(lines))

    with selectors.DefaultSelector() as selector, Watch(nobody, deserted):
        if meeting is not None:
            selector.register(meeting, selectors.EVENT_READ, meeting)
        _Line(agent, selector, lines, pipes, None).begin(greeting)
        busy = False
        while lines:
            ready = selector.select(0 if busy else PAUSE if agent.waits else None)
            for key, _ in ready:
                if isinstance(key.data, _Line):
                    key.data.read()
                elif (joined := key.data.accept()) is not None:
                    _Line(agent, selector, lines, *joined).begin(greeting)
            if ready:
                busy = True
            elif busy:  # only while nobody waits for an answer
                busy = agent.work()
            else:
                agent.pause()


class _Line:
    """One of several conversations, with the descriptors that carry it."""

    def __init__(
        self,
        agent: Agent,
        selector: selectors.BaseSelector,
        lines: dict[_Line, None],
        pipes: tuple[int, int],
        connection: socket.socket | None,
    ) -> None:
        self._agent = agent
        self._selector = selector
        self._lines = lines
        self._stdin, self._stdout = pipes
        self._connection = connection
        self._said: list[bytes] = []
        self._rest = b""

    def begin(self, greeting: Greeting) -> None:
        """Take part, with this for a first line."""
        self._conversation: Conversation = self._agent.join(self._send, greeted=greeting.answered)
        self._selector.register(self._stdin, selectors.EVENT_READ, self)
        self._lines[self] = None
        self._take(greeting.line)

    def read(self) -> None:
        """Take in what has come."""
        data = os.read(self._stdin, _PIPE)
        if data:
            self._take(data)
        else:
            self._end()

    def has_hung_up(self) -> bool:
        """Whether nobody is left at the other end; for another thread."""
        return has_hung_up(self._stdin, self._stdout, unanswered=bool(self._said))

    def _take(self, data: bytes) -> None:
        *self._said, self._rest = (self._rest + data).split(b"\n")
        while self._said:
            line = self._said.pop(0)
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
        del self._lines[self]
        self._selector.unregister(self._stdin)
        os.close(self._stdin)
        os.close(self._stdout)
        if self._connection is not None:
            release(self._connection)
