"""The child's side of a parse: one request of the parent, one answer. `worker` carries them.

::

    > {"do": "functions"}       < {"functions": [[kind, name, where, declared], …]}
    > {"do": "splits", …}       < {"splits": [{"name": …, "length": …, "without": …, "repeated": …, "unhashable": …},
                                              …], "shared": …}
    > {"do": "value", "kind": …, "name": …, "split": …, "position": …}
                                < {"value": description, "id": text}
    > {"do": "verify"}          < {}
    > {"do": "notes"}           < {"notes": [line, …], "outside": {path: path in the work tree or "", …}}
    > {"do": "memory"}          < {"memory": bytes}         the most since it was last asked
    < {"error": facts}                                      instead of an answer, see `place`

The parent asks for one value at a time and writes down what it asks before it asks: whatever becomes of this process,
what it was doing is known. Standard library only, and Python 3.8: the user's interpreter runs it.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from gds_lfs.dataset.parse.describe import describe
from gds_lfs.dataset.parse.place import facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gds_lfs.dataset.parse.audit import Audit
    from gds_lfs.dataset.parse.program import Function, Program, Split

_RUNNING = ("functions", "splits", "value")
"""The requests that run user code."""

_MOST_IDS = 1_000_000
"""So many ids of a split are compared, at most."""


class Serving:
    """One program under parse. `root` is the folder of its code."""

    def __init__(self, program: Program, root: str, audit: Audit | None) -> None:
        self._program = program
        self._root = root
        self._audit = audit
        self._functions: dict[tuple[str, str], Function] = {}
        self._splits: dict[str, Split] = {}
        self.requests = {
            "functions": self._load,
            "splits": self._split,
            "value": self._value,
            "verify": self._verify,
            "notes": self._notes,
            "memory": self._memory,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request; whatever user code raises becomes one."""
        if self._audit is not None:
            self._audit.watching = request["do"] in ("functions", "splits", "value", "verify")
        try:
            return self.requests[request["do"]](request)
        except BaseException as error:
            return {"error": facts(error, self._root)}
        finally:
            if self._audit is not None:
                self._audit.watching = False
            if request["do"] in _RUNNING:
                _flush_c()

    def _load(self, _request: dict[str, Any]) -> dict[str, Any]:
        functions = self._program.load()
        self._functions = {(function.kind, function.name): function for function in functions}
        return {"functions": [list(function) for function in functions]}

    def _split(self, _request: dict[str, Any]) -> dict[str, Any]:
        splits = self._program.splits()
        self._splits = {split.name: split for split in splits}
        return {"splits": [_looked_at(split) for split in splits], "shared": _shared(splits)}

    def _value(self, request: dict[str, Any]) -> dict[str, Any]:
        function = self._functions[request["kind"], request["name"]]
        split = self._splits[request["split"]]
        position = request["position"]
        name = ""
        with contextlib.suppress(Exception):
            name = _name(split.ids[position])
        try:
            return {"value": describe(self._program.value(function, split, position)), "id": name}
        except BaseException as error:
            return {"error": {**facts(error, self._root), "id": name}}

    def _verify(self, _request: dict[str, Any]) -> dict[str, Any]:
        self._program.verify()
        return {}

    def _notes(self, _request: dict[str, Any]) -> dict[str, Any]:
        return {"notes": self._program.notes(), "outside": self._audit.outside if self._audit else {}}

    def _memory(self, _request: dict[str, Any]) -> dict[str, Any]:
        return {"memory": peak_memory()}


def _flush_c() -> None:
    """Let go of what code in C has printed: it belongs to what runs now."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).fflush(None)


def peak_memory() -> int:
    """The most bytes this process held since this was last called, as far as the system forgets (proc(5))."""
    try:
        with open("/proc/self/status", "rb") as file:
            peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith(b"VmHWM"))
        with open("/proc/self/clear_refs", "wb") as file:
            file.write(b"5")
        return peak
    except (OSError, StopIteration):
        pass
    try:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    except ImportError:
        return 0


def _looked_at(split: Split) -> dict[str, Any]:
    """A split's length, and what is wrong with its ids: two alike, or one that cannot be told from others."""
    found: dict[str, Any] = {"name": split.name, "length": len(split.ids), "repeated": "", "unhashable": ""}
    found["without"] = list(split.without)
    seen: set[object] = set()
    for position, key in enumerate(_keys(split)):
        try:
            if key in seen:
                found["repeated"] = _name(split.ids[position])
                break
            seen.add(key)
        except TypeError:
            found["unhashable"] = f"{_name(key)} ({type(key).__name__})"
            break
    return found


def _shared(splits: list[Split]) -> list[str]:
    """Two splits that have a sample in common, and the sample."""
    seen: dict[object, str] = {}
    with contextlib.suppress(TypeError):
        for split in splits:
            if isinstance(split.ids, range):
                continue  # samples that are merely counted: each split has a first one
            for position, key in enumerate(_keys(split)):
                other = seen.setdefault(key, split.name)
                if other != split.name:
                    return [other, split.name, _name(split.ids[position])]
    return []


def _keys(split: Split) -> Iterator[object]:
    """What tells the samples of a split from each other: their ids, or, of our own rows, the numbers."""
    keys = getattr(split.ids, "numbers", split.ids)
    chosen = (keys[position] for position in range(min(len(keys), _MOST_IDS)))
    return (getattr(key, "_number", key) for key in chosen)


def _name(sample: object) -> str:
    """What a sample is called in messages."""
    row_id = getattr(sample, "_row_id", None)
    name = sample if isinstance(sample, str) else repr(sample)
    return (row_id() if callable(row_id) else name)[:80]
