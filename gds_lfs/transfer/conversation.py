"""One conversation between git-lfs and an agent: which message may come next, and the messages that answer it.

An answered object is followed by the next request; until then the object in question may be told the progress of. That
never goes back and stays below the object's size until `complete`, which tells the rest.
"""

from __future__ import annotations

import enum
import time
from typing import TYPE_CHECKING

from gds_lfs.transfer.lfs_messages import (
    Complete,
    Download,
    Fault,
    Init,
    MalformedMessage,
    Progress,
    Ready,
    Terminate,
    Upload,
    decode_request,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Conversation", "Shares", "State"]

#: Seconds between two words about a download that is under way; there may be thousands of steps in a second.
STEP = 0.1


class State(enum.Enum):
    """Where a conversation stands."""

    NEW = "before init"
    READY = "between requests"
    BUSY = "a request is not answered yet"
    OVER = "terminated"


class Conversation:
    """One conversation; `send` carries its answers, `greeted` tells that its `init` has its answer (greeting.py)."""

    def __init__(self, send: Callable[[bytes], None], greeted: bool = False) -> None:
        self._send = send
        self._greeted = greeted
        self._refusal = ""
        self.state = State.NEW
        self.remote = ""
        self.operation = ""
        self._oid = ""
        self._size = 0
        self._so_far = 0

    def receive(self, line: bytes) -> Init | Upload | Download | Terminate:
        """Take in a line. Raises MalformedMessage for what is no message, or must not come now."""
        message = decode_request(line)
        if isinstance(message, Terminate):
            self.state = State.OVER
        elif isinstance(message, Init):
            self._expect(State.NEW, "init", "")
            self.operation, self.remote = message.operation, message.remote
        else:
            event = "upload" if isinstance(message, Upload) else "download"
            self._expect(State.READY, event, message.oid)
            if event != self.operation:
                raise MalformedMessage(f"{event} is out of place: init said {self.operation}", message.oid)
            self.state = State.BUSY
            self._oid, self._size, self._so_far = message.oid, message.size, 0
        return message

    def ready(self) -> None:
        """Answer init, unless that is done."""
        self.state = State.READY
        if not self._greeted:
            self._send(encode(Ready()))

    def refuse(self, fault: Fault) -> None:
        """Answer init with an error. One that has its answer already gets no other: the requests that come are told."""
        if self._greeted:
            self._refusal = fault.message
        else:
            self._send(encode(Ready(fault)))

    def advance(self, so_far: int) -> None:
        """So many bytes of the object in question have moved."""
        progress = self._progress(so_far)
        if progress:
            self._send(progress)

    def advance_to(self, part: int, whole: int) -> None:
        """Such a part of the object in question has moved; what is left of it is told by `complete`."""
        self.advance(min(self._size * part // whole, self._size - 1))

    def complete(self, path: str | None = None) -> None:
        """The object is done."""
        self.state = State.READY
        self._send(self._progress(self._size) + encode(Complete(self._oid, path)))

    def fail(self, fault: Fault, oid: str | None = None) -> None:
        """The object cannot be done."""
        if self.state is State.BUSY:
            self.state = State.READY
        self._send(encode(Complete(self._oid if oid is None else oid, error=fault)))

    def _progress(self, so_far: int) -> bytes:
        step = so_far - self._so_far
        if step <= 0:
            return b""
        self._so_far = so_far
        return encode(Progress(self._oid, so_far, step))

    def _expect(self, state: State, event: str, oid: str) -> None:
        if self.state is not state:
            raise MalformedMessage(self._refusal or f"{event} is out of place: {self.state.value}", oid)


class Shares:
    """The progress of a download that brings the objects of several conversations (a queue.Progress).

    What travels is packed and shared between them, so nobody's bytes can be told apart: each object is said to be as
    far as all of them together are.
    """

    def __init__(self, waiting: Sequence[Conversation]) -> None:
        self._waiting = waiting
        self._whole = 0
        self._part = 0
        self._next = 0.0

    def start(self, what: str, total_bytes: int, total_items: int) -> None:  # noqa: ARG002 - others tell it
        """So many bytes are to come."""
        self._whole, self._part = total_bytes, 0

    def advance(self, size: int, items: int) -> None:  # noqa: ARG002
        """So many more have come."""
        self._part += size
        now = time.monotonic()
        if now >= self._next and self._whole:
            self._next = now + STEP
            for conversation in self._waiting:
                conversation.advance_to(self._part, self._whole)

    def done(self) -> None:
        """Nothing to tell: `complete` tells it."""
