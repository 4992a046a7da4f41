"""A child process in a process group of its own that is spoken to in lines of JSON.

It is ended with all it started: when it dies, when it is silent for too long, and when it is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TAIL = 2000
_PATIENCE = 2.0


class ChildDied(Exception):
    """The child is gone; the message says how it ended, and its last words."""


class Child:
    """The process `command`, started in `cwd`. What it prints goes to `output`, as it comes, from another thread.

    Raises DatasetError when there is no such program. A child that sends nothing for `timeout` seconds is ended.
    """

    def __init__(
        self, command: list[str], cwd: Path, output: Callable[[bytes], None] | None, timeout: float | None
    ) -> None:
        self._output = output
        self._timeout = timeout
        self._timed_out = False
        self._tail = b""
        self.has_answered = False
        try:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise DatasetError(
                f"the Python for index.py cannot be started: {command[0]}: {error.strerror}; "
                "choose another: git config datasets.python <path>"
            ) from None
        self._drain = threading.Thread(target=self._drain_output, daemon=True)
        self._drain.start()
        self._watch = threading.Thread(target=self._end_with_child, daemon=True)
        self._watch.start()

    def send(self, message: object) -> None:
        """Write a line; raises ChildDied when nobody reads it."""
        assert self._process.stdin is not None  # a pipe, as asked for
        try:
            self._process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            self._raise_death()

    def receive(self) -> Any:
        """The next line; raises ChildDied when there is none."""
        assert self._process.stdout is not None
        timer = self._start_timer()
        line = self._process.stdout.readline()
        if timer is not None:
            timer.cancel()
        if not line.endswith(b"\n"):
            self._raise_death()
        self.has_answered = True
        return json.loads(line)

    def close(self, patience: float = _PATIENCE) -> None:
        """Let the child end by itself for a moment, then end it and all it started."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._kill()
        self._process.wait()
        self._watch.join()
        self._drain.join(_PATIENCE)  # a process that left the group may hold the pipe open
        self._process.stdout.close()

    @property
    def last_words(self) -> str:
        """The last line the child printed, for messages."""
        lines = [line for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].strip()[:300] if lines else ""

    def _raise_death(self) -> None:
        code = self._ended()
        self._drain.join(_PATIENCE)
        if self._timed_out:
            how = f"sent nothing for {self._timeout:g} seconds and was ended"
        elif code is None:
            how = "closed the files it is spoken to through"
        elif code < 0:
            how = f"was ended by {_signal_name(-code)}"
            if -code == getattr(signal, "SIGKILL", 9):
                how += " (the system does that when memory runs out)"
        else:
            how = f"ended early, with exit code {code}"
        raise ChildDied(f"{how}; the last it printed: {self.last_words}" if self.last_words else how)

    def _ended(self) -> int | None:
        """The exit code of the child; None for one that had to be ended now, since it went on without answering."""
        try:
            return self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
            return None

    def _start_timer(self) -> threading.Timer | None:
        if self._timeout is None:
            return None
        timer = threading.Timer(self._timeout, self._time_out)
        timer.daemon = True
        timer.start()
        return timer

    def _time_out(self) -> None:
        self._timed_out = True
        self._kill()

    def _end_with_child(self) -> None:
        # Processes it left behind would hold its end of the pipe open, and a reader would wait for them.
        self._process.wait()
        self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _drain_output(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while data := os.read(stream.fileno(), 1 << 16):
                self._tail = (self._tail + data)[-_TAIL:]
                if self._output is not None:
                    self._output(data)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
