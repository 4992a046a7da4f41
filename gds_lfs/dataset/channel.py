"""The child's end of the pipes to the parent, and what a process of ours does before it runs user code.

Standard library only, and Python 3.8: the user's interpreter runs it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from typing import Any

_FLUSH_SIZE = 1 << 15
_FLUSH_SECONDS = 0.05

# Set for hooks, they would send the git commands of user code to a temporary index or another repository.
_GIT_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
)


class Channel:
    """The parent's end of the pipes. Held apart from Python's buffers, which a fork of user code would flush again."""

    def __init__(self, requests: int, replies: int) -> None:
        self._lock = threading.Lock()
        self._requests = os.fdopen(requests, "rb")
        self._replies = replies
        self._pending = bytearray()
        self._flushed = 0.0

    def receive(self) -> dict[str, Any] | None:
        """The parent's next request, or None at its end."""
        line = self._requests.readline()
        request: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        return request

    def send(self, message: object) -> None:
        """Queue a line; it leaves at once when the last one left a while ago."""
        self._pending += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(self._pending) >= _FLUSH_SIZE or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def ask(self, message: object) -> dict[str, Any]:
        """Ask the parent something in the middle of a request of its own; user code may have threads."""
        with self._lock:
            self.send(message)
            self.flush()
            answer = self.receive()
        if answer is None:
            raise EOFError("the process that started this one is gone")
        return answer

    def flush(self) -> None:
        pending, self._pending = memoryview(bytes(self._pending)), bytearray()
        while pending:
            pending = pending[os.write(self._replies, pending) :]
        self._flushed = time.monotonic()


def open_channel() -> Channel:
    """Take over standard input and output: what user code prints goes to standard error, and there is no input."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    for name in _GIT_VARIABLES:
        os.environ.pop(name, None)
    return Channel(requests, replies)


def write_stacks_to(path: str) -> None:
    """Have Python write down where it is when it crashes, and when `guard` asks before it ends this process."""
    file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process lives
    faulthandler.enable(file)
    with contextlib.suppress(AttributeError, OSError, RuntimeError):
        faulthandler.register(signal.SIGUSR2, file)


def _end_with_parent(parent: int) -> None:
    """End this process, and what it started, soon after its parent was killed: user code may never come back."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)
