"""The facts of an exception in user code: what it is, and the innermost line of the user's own files.

Facts travel as JSON; what they mean is told by `advice`, which knows more of the world than this process.

::

    {"error": "FileNotFoundError", "text": "FileNotFoundError: [Errno 2] …", "where": "index.py:12, in image_input",
     "path": "/…/labels.csv", "module": null, "similar": [], "exit": null, "memory": false, "kind": "", "advice": "",
     "trace": ["index.py:12, in image_input", …]}

Standard library only, and Python 3.8: the user's interpreter runs it.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any

from gds_lfs.dataset.parse.program import ProgramError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST = 600
_QUOTED_PATH = re.compile(r"""['"]([^'"\n]*[/\\.][^'"\n]*)['"]""")
_NOT_FOUND = re.compile(r"(.+?) not found\.?")  # as numpy says it
_FOREIGN = ("site-packages", "dist-packages")
_STACK_LINE = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')


def facts(error: BaseException, root: str) -> dict[str, Any]:
    """What is told of an exception that came out of the code in the folder `root`."""
    trace = own_frames(error, root)
    found: dict[str, Any] = {
        "error": type(error).__name__,
        "text": _text(error),
        "where": _syntax_place(error, root) or (trace[-1] if trace else ""),
        "path": _path(error),
        "module": error.name if isinstance(error, ModuleNotFoundError) else None,
        "similar": [],
        "exit": repr(error.code) if isinstance(error, SystemExit) else None,
        "memory": isinstance(error, MemoryError) or "out of memory" in str(error).lower(),
        "kind": "",
        "advice": "",
        "trace": trace,
    }
    if isinstance(error, ModuleNotFoundError) and error.name:
        found["similar"] = _similar(error.name)
    if isinstance(error, ProgramError):
        found.update(kind=error.kind, advice=error.advice, text=str(error), where=error.where or found["where"])
    return found


def own_frames(error: BaseException, root: str) -> list[str]:
    """The frames of the user's own files, the innermost last: `index.py:12, in resize`."""
    found = []
    for frame in traceback.extract_tb(error.__traceback__):
        path = own_path(frame.filename, root)
        if path is not None:
            inside = "" if frame.name == "<module>" else f", in {frame.name}"
            found.append(f"{path}:{frame.lineno}{inside}")
    return found


def own_path(filename: str, root: str) -> str | None:
    """The path, relative to `root`, of a file of the user's own code; None for any other."""
    path = os.path.relpath(filename, root) if os.path.isabs(filename) else os.pardir
    parts = path.split(os.sep)
    if parts[0] == os.pardir or any(part in _FOREIGN for part in parts):
        return None
    return "/".join(parts)


def stack_place(dump: str, root: str) -> str:
    """The innermost own frame in what faulthandler wrote, of the first thread that has one; empty when none has."""
    for line in dump.splitlines():
        match = _STACK_LINE.match(line)
        path = own_path(match["file"], root) if match else None
        if match and path is not None:
            inside = "" if match["function"] == "<module>" else f", in {match['function']}"
            return f"{path}:{match['line']}{inside}"
    return ""


def _text(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    text = "\n".join(line.rstrip() for line in lines[:4])
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _syntax_place(error: BaseException, root: str) -> str:
    if not isinstance(error, SyntaxError) or not error.filename:
        return ""
    path = own_path(error.filename, root)
    return "" if path is None else f"{path}:{error.lineno}"


def _path(error: BaseException) -> str | None:
    """The file that an error is about: its own, or the first that its words name."""
    if not isinstance(error, OSError):
        return None
    told = _NOT_FOUND.fullmatch(str(error)) if isinstance(error, FileNotFoundError) else None
    named: Sequence[object] = [error.filename] if error.filename is not None else _QUOTED_PATH.findall(str(error))[:1]
    named = named or ([told[1]] if told else [])
    for each in named:
        if isinstance(each, (str, bytes, os.PathLike)):
            return os.path.abspath(os.fsdecode(each))
    return None


def _similar(name: str) -> list[str]:
    """The modules that could be imported here and are called almost so."""
    import difflib
    import pkgutil

    names = {module.name for module in pkgutil.iter_modules()}
    names |= set(getattr(sys, "stdlib_module_names", sys.builtin_module_names))
    return difflib.get_close_matches(name.partition(".")[0], sorted(names), 2, 0.75)
