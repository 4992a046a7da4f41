"""The process between us and the user's Python: `python guard.py STATUS LIMIT COMMAND...`, in our own interpreter.

It starts COMMAND with its own standard streams and lets go of them. What COMMAND starts, it starts below this
process, which is a subreaper on Linux (prctl(2)): an orphan becomes its child, also one that called setsid(2), which
leaves a process group. So when COMMAND has ended, or we have, everything below is killed until nothing is left.

The resident memory of all of it is looked at all the time: address space says little of numpy and torch, which
reserve far more than they use. Above LIMIT bytes (0: no limit) everything is killed. Shared pages are counted once
before that is decided (`smaps_rollup`, proc(5)).

To the file STATUS it writes JSON, one value a line::

    {"exec": errno}                                          COMMAND cannot be started
    {"memory": bytes}                                        of all processes, when it has changed
    {"end": wait status, "peak": bytes, "over": bool}        the last line; `over`: LIMIT was exceeded

SIGTERM asks it to end COMMAND. Before COMMAND is killed, SIGUSR2 lets it write down where it is (see `worker`).
Standard library only, and little of it: it starts with every child. Not for Windows.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

_TICK = 0.02
"""Seconds between two looks at the memory of the processes that are known, where it is limited."""
_SLOW_TICK = 0.1
"""And where it is only of interest."""
_SCAN = 0.1
"""Seconds, at least, between two searches for new ones."""
_SCAN_SHARE = 20
"""A search takes at most one part in so many of the time."""
_LAST_WORDS = 0.1
_PATIENCE = 5.0
_STEP = 1 << 20
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Processes:
    """The processes below this one, as far as the system shows them."""

    def __init__(self) -> None:
        self.known: set[int] = set()
        self._due = 0.0

    def look(self, *, now: bool = False) -> set[int]:
        """Those that are there, all of them if a search is due."""
        began = time.monotonic()
        if now or began >= self._due:
            self.known = _below(os.getpid())
            ended = time.monotonic()
            self._due = ended + max(_SCAN, _SCAN_SHARE * (ended - began))
        return self.known

    def memory(self) -> int:
        """Bytes that they hold, pages that two of them share counted twice."""
        return sum(map(_resident, self.look()))

    def exact_memory(self) -> int:
        """Bytes that they hold, each page once; what could be read again from a file left out, where known."""
        return sum(map(_proportional, self.look(now=True)))

    def kill(self) -> None:
        """Kill all of them, those they start meanwhile as well, and wait for their ends."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            for pid in self.look(now=True):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(0.002)


class Guard:
    """One COMMAND under watch."""

    def __init__(self, status: int, limit: int, command: list[str]) -> None:
        self._status = status
        self._limit = limit
        self._tick = _TICK if limit else _SLOW_TICK
        self._processes = Processes()
        self._peak = 0
        self._told = 0
        self._over = False
        self._asked = False
        self._end: int | None = None
        self._wake, write = os.pipe()
        for end in (self._wake, write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._ask)
        self._command = os.fork()
        if not self._command:
            self._become(command)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)

    def run(self) -> None:
        """Watch until COMMAND has ended, or must end; leave nothing behind."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(self._status, 0)  # an error there: nobody reads it any more
        while self._end is None and not self._asked:
            for file, _ in poll.poll(self._tick * 1000):
                if file == self._status:
                    self._asked = True
                else:
                    os.read(self._wake, 512)
            self._reap()
            self._measure()
        if self._end is None:
            self._let_speak()
        self._processes.kill()
        with contextlib.suppress(OSError):
            os.killpg(self._command, signal.SIGKILL)  # where processes cannot be listed
        self._reap()
        end = signal.SIGKILL if self._end is None else self._end
        self._tell(f'{{"end": {int(end)}, "peak": {self._peak}, "over": {"true" if self._over else "false"}}}')

    def _become(self, command: list[str]) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        try:
            os.execv(command[0], command)
        except OSError as error:
            self._tell(f'{{"exec": {error.errno}}}')
        os._exit(127)

    def _ask(self, *_: object) -> None:
        self._asked = True

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self._command:
                    self._end = status
                if not pid:
                    return

    def _measure(self) -> None:
        memory = self._processes.memory()
        if self._limit and memory > self._limit:
            memory = self._processes.exact_memory()
            self._over = memory > self._limit
            self._asked = self._asked or self._over
        self._peak = max(self._peak, memory)
        if abs(memory - self._told) > _STEP:
            self._told = memory
            self._tell(f'{{"memory": {memory}}}')

    def _let_speak(self) -> None:
        """Let COMMAND write down where it is, and end it."""
        with contextlib.suppress(OSError):
            os.kill(self._command, signal.SIGUSR2)
        until = time.monotonic() + _LAST_WORDS
        while self._end is None and time.monotonic() < until:
            time.sleep(0.005)
            self._reap()
        if self._end is None:
            with contextlib.suppress(OSError):
                os.kill(self._command, signal.SIGKILL)
                _, self._end = os.waitpid(self._command, 0)

    def _tell(self, line: str) -> None:
        # By hand: to import json would take longer than all else here.
        with contextlib.suppress(OSError):
            os.write(self._status, line.encode() + b"\n")


def _below(root: int) -> set[int]:
    """All descendants of a process. Empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return set()
    for name in names:
        if name.isdigit():
            text = _read(f"/proc/{name}/stat")
            fields = text[text.rfind(b")") + 2 :].split(None, 2)
            if len(fields) > 1:
                children.setdefault(int(fields[1]), []).append(int(name))
    found: set[int] = set()
    queue = [root]
    while queue:
        new = [pid for pid in children.get(queue.pop(), []) if pid not in found]
        found.update(new)
        queue += new
    return found


def _resident(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split(None, 2)
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _proportional(pid: int) -> int:
    sizes = {}
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines()[1:]:
        name, _, rest = line.partition(b":")
        sizes[name] = int(rest.split()[0]) * 1024
    if b"Pss_Anon" in sizes:
        return sizes[b"Pss_Anon"] + sizes.get(b"Pss_Shmem", 0)
    return sizes.get(b"Pss", 0) or _resident(pid)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def _prctl(option: int, value: int) -> None:
    """One of Linux's settings of a process; nothing elsewhere."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, int(value), 0, 0, 0)


def main() -> None:
    """Run as the module's docstring says."""
    status, limit, *command = sys.argv[1:]
    os.set_inheritable(int(status), False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    Guard(int(status), int(limit), command).run()


if __name__ == "__main__":
    main()
