"""A child process that is spoken to in lines of JSON, under a guard.

It is ended with all it started: when it dies, when it is silent for too long, when it takes more memory than it may,
and when it is closed (`guard` does it; where processes cannot be forked, the child alone is ended).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable

_TAIL = 2000
_PATIENCE = 2.0
_GUARD = Path(__file__).with_name("guard.py")
_GUARDED = hasattr(os, "fork")


class NotStartedError(DatasetError):
    """The interpreter is none, or too old: `headline` says so, `advice` is a command."""

    def __init__(self, headline: str) -> None:
        self.headline = headline
        self.advice = "git config datasets.python <path>"
        super().__init__(f"{headline}. Choose another: {self.advice}")


class ChildDied(Exception):
    """The child is gone; the message says how it ended, and its last words.

    `timed_out`: it was silent for too long; `over`: it took more memory than it may; `code` is its exit code, negative
    for a signal, None when it had to be ended.
    """

    def __init__(self, how: str, code: int | None, *, timed_out: bool = False, over: bool = False) -> None:
        super().__init__(how)
        self.code = code
        self.timed_out = timed_out
        self.over = over


class Child:
    """The process `command`, started in `cwd`. What it prints goes to `output`, as it comes, from another thread.

    Raises NotStartedError when there is no such program. A child that sends nothing for `timeout` seconds is ended, and
    so is one that holds more than `memory_limit` bytes together with all it started.
    """

    def __init__(
        self,
        command: list[str],
        cwd: Path,
        output: Callable[[bytes], None] | None,
        timeout: float | None,
        memory_limit: int | None = None,
    ) -> None:
        self._program = command[0]
        self._output = output
        self.timeout = timeout
        self._timed_out = False
        self._tail = b""
        self._heard = threading.Condition()
        self._end: dict[str, Any] = {}
        self._memory = 0
        self._peak = 0
        self.has_answered = False
        reader = -1
        try:
            if _GUARDED:
                reader, status = os.pipe()
                guard = [sys.executable, "-I", "-S", "-B", str(_GUARD), str(status), str(memory_limit or 0)]
                try:
                    self._process = self._start([*guard, *command], cwd, (status,))
                finally:
                    os.close(status)
            else:
                self._process = self._start(command, cwd, ())
        except OSError as error:
            if reader >= 0:
                os.close(reader)
            raise self._not_started(error.strerror) from None
        self._drain = threading.Thread(target=self._drain_output, daemon=True)
        self._drain.start()
        self._watch = threading.Thread(target=self._watch_child, args=(reader,), daemon=True)
        self._watch.start()

    @staticmethod
    def _start(command: list[str], cwd: Path, files: tuple[int, ...]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=files,
        )

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

    def take_peak(self) -> int:
        """The most bytes seen to be held, by the child and all it started, since this was last asked."""
        peak, self._peak = self._peak, self._memory
        return peak or int(self._end.get("peak", 0))

    def settle_output(self) -> None:
        """Wait until all that the child has printed by now went to `output`."""
        until = time.monotonic() + _PATIENCE
        stream = self._process.stderr
        with self._heard:
            while stream is not None and not stream.closed and _waiting(stream.fileno()):
                if not self._heard.wait(max(0.0, until - time.monotonic())):
                    return

    def _raise_death(self) -> None:
        code = self._ended()
        self._drain.join(_PATIENCE)
        if "exec" in self._end:
            raise self._not_started(os.strerror(self._end["exec"]))
        over = bool(self._end.get("over"))
        if over:
            how = f"took {self._peak / (1 << 20):,.0f} MiB of memory, more than it may, and was ended"
        elif self._timed_out:
            how = f"sent nothing for {self.timeout:g} seconds and was ended"
        elif code is None:
            how = "closed the files it is spoken to through"
        elif code < 0:
            how = f"was ended by {signal_name(-code)}"
            if -code == getattr(signal, "SIGKILL", 9):
                how += " (the system does that when memory runs out)"
        else:
            how = f"ended early, with exit code {code}"
        text = f"{how}; the last it printed: {self.last_words}" if self.last_words else how
        raise ChildDied(text, code, timed_out=self._timed_out, over=over)

    def _not_started(self, reason: str | None) -> NotStartedError:
        return NotStartedError(f"the Python for index.py cannot be started: {self._program}: {reason}")

    def _ended(self) -> int | None:
        """The exit code of the child; None for one that had to be ended now, since it went on without answering."""
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
            self._watch.join(_PATIENCE)
            return None
        self._watch.join(_PATIENCE)
        return os.waitstatus_to_exitcode(self._end["end"]) if "end" in self._end else code

    def _start_timer(self) -> threading.Timer | None:
        if self.timeout is None:
            return None
        timer = threading.Timer(self.timeout, self._time_out)
        timer.daemon = True
        timer.start()
        return timer

    def _time_out(self) -> None:
        self._timed_out = True
        self._kill()

    def _watch_child(self, reader: int) -> None:
        """Hear what the guard says, until it has ended."""
        if reader >= 0:
            with os.fdopen(reader, "rb") as status:
                for line in status:
                    said = json.loads(line)
                    self._memory = said.get("memory", self._memory)
                    self._peak = max(self._peak, said.get("peak", 0) if said.get("over") else self._memory)
                    if "memory" not in said:
                        self._end |= said
        self._process.wait()
        if reader < 0:
            # Processes it left behind would hold its end of the pipe open, and a reader would wait for them.
            self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            if _GUARDED:
                self._process.terminate()  # the guard ends the child, and itself when nothing is left
            else:
                self._process.kill()

    def _drain_output(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while True:
                _wait_for(stream.fileno())
                with self._heard:  # read and handed on in one step, for `settle_output`
                    data = os.read(stream.fileno(), 1 << 16)
                    self._tail = (self._tail + data)[-_TAIL:]
                    if self._output is not None and data:
                        self._output(data)
                    self._heard.notify_all()
                if not data:
                    return


def _wait_for(file: int) -> None:
    """Return when a pipe can be read."""
    if _GUARDED:
        import select

        poll = select.poll()
        poll.register(file, select.POLLIN)
        poll.poll()


def _waiting(file: int) -> bool:
    """Whether a pipe holds something that nobody has read yet."""
    try:
        import fcntl
        import termios

        return fcntl.ioctl(file, termios.FIONREAD, b"\0" * 4) != b"\0" * 4
    except (ImportError, OSError):
        return False


def signal_name(number: int) -> str:
    """`SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
