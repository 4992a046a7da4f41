"""From what went wrong in user code to its class, in words, with what to do.

The child tells facts (`place`) or dies; what they mean also depends on what is in the repository and on this machine,
which `Surroundings` knows. Pure apart from what that asks.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gds_lfs.dataset.child import signal_name
from gds_lfs.dataset.parse.place import stack_place
from gds_lfs.dataset.parse.result import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gds_lfs.dataset.child import ChildDied

_MISSING = ("FileNotFoundError", "NotADirectoryError", "NotFetchedError")
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")
_NEARLY_ALL = 0.8


class Told(NamedTuple):
    """What a surrounding knows of a path or a module: a kind of `result.KINDS`, words, advice."""

    kind: str
    text: str
    advice: str


class Surroundings(Protocol):
    """What is known outside of the child."""

    def of_path(self, path: str) -> Told:
        """Why the file or folder at this absolute path, as the child saw it, is not there."""

    def of_module(self, name: str, similar: list[str]) -> Told:
        """Why the module cannot be imported; `similar` are names that can be."""

    def memory(self) -> int:
        """Bytes that this machine, or the container we are in, has."""


class Task(NamedTuple):
    """What user code was doing: at which stage, in which function (`input`, `image`), for which sample."""

    stage: str
    kind: str
    name: str = ""
    where: str = ""
    """Where the function is written, for a failure that has no line of its own."""
    split: str | None = None
    sample: str | None = None

    @property
    def function(self) -> str | None:
        """`input image`."""
        return f"{self.kind.replace('_', ' ')} {self.name}" if self.name else None

    def finding(self, kind: str, text: str, advice: str, **more: Any) -> Finding:
        """What is told of it."""
        more = {"where": self.where or None, **{key: value for key, value in more.items() if value}}
        return Finding(
            kind, self.stage, text, advice, function=self.function, split=self.split, sample=self.sample, **more
        )


class Limits(NamedTuple):
    """The confines as the user sets them: bytes and seconds, None for none."""

    memory: int | None = None
    seconds: float | None = None


class Advisor(NamedTuple):
    """Classifies failures of code in the folder `root`; ingests and derived fields run in `work`."""

    around: Surroundings
    root: str
    work: str
    limits: Limits

    def of_facts(self, facts: Mapping[str, Any], task: Task, peak: int) -> Finding:
        """The finding for what the child told of an exception. `peak` is the most memory that was held."""
        told = self._told(facts, task, peak)
        return task.finding(told.kind, told.text, told.advice, where=facts["where"], trace=facts["trace"])

    def of_death(self, death: ChildDied, stack: str, task: Task, peak: int) -> Finding:
        """The finding for a child that ended. `stack` is what Python wrote down then."""
        told = self._told_of_death(death, peak)
        place = stack_place(stack, self.root) or stack_place(stack, self.work)
        return task.finding(told.kind, told.text, told.advice, where=place)

    def _told(self, facts: Mapping[str, Any], task: Task, peak: int) -> Told:
        error, text = facts["error"], str(facts["text"])
        if facts["kind"]:
            return Told(facts["kind"], text, facts["advice"])
        if facts["exit"] is not None:
            return _exit(f"it called sys.exit({facts['exit']})")
        if facts["memory"]:
            return Told("out_of_memory", f"{text}; {_held(peak, self.limits)}", _less_memory(self.limits))
        if facts["module"]:
            return self.around.of_module(facts["module"], facts["similar"])
        if error in _SYNTAX:
            return Told("syntax_error", text, "mend the line; nothing else was looked at")
        return self._of_path(facts["path"], error, text) or _of_code(task, text)

    def _of_path(self, path: str | None, error: str, text: str) -> Told | None:
        if path is None:
            return None
        if error == "VolumeError":
            advice = "read from an allowed one, or allow it: git config --add datasets.volumes FOLDER"
            return Told("outside_volumes", f"{path} is outside the allowed volumes (datasets.volumes)", advice)
        if error in _MISSING:
            found = self.around.of_path(path)
            return Told(found.kind, f"{text}\n{found.text}" if found.text else text, found.advice)
        if error == "PermissionError":
            advice = f"give yourself the right to it (ls -ld {path}); the account of a training job needs it, too"
            return Told("permission", text, advice)
        return None

    def _told_of_death(self, death: ChildDied, peak: int) -> Told:
        if death.over:
            return Told("out_of_memory", f"out of memory: {_held(peak, self.limits)}", _less_memory(self.limits))
        if death.timed_out:
            return Told(
                "hang",
                f"no answer for {self.limits.seconds or 0:g} seconds (datasets.parseTimeout); it was ended",
                "look for a wait without end (a lock, the network, input()); if it only takes long: "
                "git config datasets.parseTimeout SECONDS",
            )
        if death.code is not None and death.code >= 0:
            return _exit(f"it ended its process, with exit code {death.code} (os._exit, or a library did)")
        if death.code is not None and -death.code == getattr(signal, "SIGKILL", 9):
            return self._killed(peak)
        if death.code is None:
            text = "it closed the pipes that it is spoken to through, and was ended"
            return Told("crashed", text, "leave files alone that the code has not opened (os.closerange)")
        return Told(
            "crashed",
            f"it crashed ({signal_name(-death.code)}): code in C went wrong, of a library or of its own",
            "look for a library that is too old, or for two that do not fit together; this line was running",
        )

    def _killed(self, peak: int) -> Told:
        held = f"when it held {size_text(peak)}"
        if peak > _NEARLY_ALL * self.around.memory():
            return Told("out_of_memory", f"out of memory: the system killed it {held}", _less_memory(self.limits))
        return Told(
            "killed",
            f"it was killed (SIGKILL) {held}: somebody did it, or the system ran out of memory",
            "look at the memory of the stages, and at the system's log (dmesg)",
        )


def _of_code(task: Task, text: str) -> Told:
    if not task.kind:
        return Told("exception_in_import", text, "the module must import without an error, on any machine")
    if task.kind == "preprocess":
        return Told("exception_in_preprocess", text, "mend preprocess; no sample can be read before")
    return Told(f"exception_in_{task.kind}", text, "mend the line; git datasets parse looks at it again")


def _exit(text: str) -> Told:
    return Told("exit_called", text, "raise an exception instead; what belongs to a script goes under __main__")


def _held(peak: int, limits: Limits) -> str:
    limit = f", the limit is {size_text(limits.memory)} (datasets.memoryLimit)" if limits.memory else ""
    return f"it held {size_text(peak)}{limit}"


def _less_memory(limits: Limits) -> str:
    more = f", or allow more: git config datasets.memoryLimit {_double(limits.memory)}" if limits.memory else ""
    return f"load less at once, such as one file for one sample{more}"


def _double(limit: int) -> str:
    mebi = -(-2 * limit // (1 << 20))
    return f"{mebi // 1024}g" if mebi >= 1024 and mebi % 1024 == 0 else f"{mebi}m"


def size_text(size: float) -> str:
    """`17 B`, `3.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"


def total_memory() -> int:
    """Bytes that this machine, or the container we are in, has; a very large number where nobody knows."""
    limits = [1 << 60]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    with contextlib.suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits)
