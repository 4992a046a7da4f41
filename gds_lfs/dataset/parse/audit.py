"""Which files user code opens that somebody else would not have: an audit hook of the interpreter (PEP 578).

It sees what Python opens, lists and connects to, not what a library opens in C. Reading counts; what the code itself
wrote or made is its own. Standard library only, and Python 3.8: the user's interpreter runs it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_READS = {"open", "os.listdir", "os.scandir", "sqlite3.connect"}
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys", "/run", "/bin", "/sbin", "/System", "/Library")
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_MOST = 50


class VolumeError(PermissionError):
    """A path outside the allowed volumes was read."""


class Audit:
    """The watch over one process. `inside` are folders that everybody has, `elsewhere` ones that are only here.

    With `volumes`, only these may be read besides; otherwise reading outside is only noted.
    """

    def __init__(self, inside: Iterable[str], volumes: Sequence[str] | None, elsewhere: str = "") -> None:
        self._inside = tuple(map(_real, inside))
        self._volumes = None if volumes is None else tuple(map(_real, volumes))
        self._elsewhere = _real(elsewhere) if elsewhere else ""
        self._system = tuple({*_SYSTEM, *map(_real, (sys.prefix, sys.base_prefix, sys.exec_prefix)), *_libraries()})
        self._hidden = os.path.join(_real(os.path.expanduser("~")), ".")
        self.given: set[str] = set()
        """Files that we handed to the code ourselves."""
        self.outside: dict[str, str] = {}
        """What was read that is absent elsewhere: where from, and by what path."""
        self._made: set[str] = set()
        self.watching = False

    def install(self) -> None:
        """Start to listen. It cannot be undone; nothing is noted while not `watching`."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching or (event not in _READS and event != "os.mkdir"):
            return
        path = arguments[0]
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        if not isinstance(path, (str, bytes)) or path in ("", ":memory:"):
            return
        self.watching = False  # what we ask of the system is no business of ours
        try:
            self._look(event, _real(_path(os.fsdecode(path))), arguments)
        finally:
            self.watching = True

    def _look(self, event: str, path: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.mkdir" or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _MAKING):
            self._made.add(path)
            return
        own = path in self.given or path in self._made or os.path.dirname(path) in self._made
        if own or path.startswith(self._hidden) or _within(path, self._inside + self._system):
            return
        if self._volumes is not None:
            if not _within(path, self._volumes):
                self._note(path)
                raise VolumeError(1, "outside the allowed volumes", path)
        elif os.path.exists(path):
            self._note(path)

    def _note(self, path: str) -> None:
        if path not in self.outside and len(self.outside) < _MOST:
            work_tree = self._elsewhere and _within(path, (self._elsewhere,))
            self.outside[path] = os.path.relpath(path, self._elsewhere) if work_tree else ""


def _path(name: str) -> str:
    """The path in what sqlite3 takes for one, which may be a URI."""
    if not name.startswith("file:"):
        return name
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(name).path)


def _real(path: str) -> str:
    return os.path.realpath(path)


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)


def _libraries() -> list[str]:
    ours = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir)
    return [_real(each) for each in [*sys.path, ours] if os.path.isabs(each)]
