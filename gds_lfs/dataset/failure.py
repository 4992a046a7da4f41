"""What is told of an exception in user code: the innermost line of the user's own files, and one or two lines of text.

What is wrong with a declaration, or with what a function returned, is told with the line that it is written on.

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import ast
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from gds_lfs.dataset.declaration import DeclarationError
from gds_lfs.dataset.rows import ReturnError

if TYPE_CHECKING:
    from gds_lfs.dataset.staged import StagedModules

_LONGEST = 400


def report(error: BaseException, modules: StagedModules, running: str | None) -> dict[str, Any]:
    """`text` (what) and `where` (`index.py:12, in resize`) of an exception; for what the user's code did not raise
    itself a `place` (`index.py:12`) instead. `running` is the function that was called.
    """
    if isinstance(error, (DeclarationError, ReturnError)):
        return {"text": str(error), "where": None, "place": _place(running or str(error), modules)}
    if isinstance(error, SystemExit):
        text = f"it called sys.exit({error.code!r})"
    elif isinstance(error, ModuleNotFoundError) and error.name:
        text = _missing_module(error, modules)
    else:
        text = _first_lines("".join(traceback.format_exception_only(type(error), error)), error)
    return {"text": text, "where": _where(error, modules)}


def _place(text: str, modules: StagedModules) -> str:
    """Where the `index.py` has the field, function or class whose name the text begins with; at least which file."""
    name = text.replace(":", " ").partition(" ")[0]
    line = lines_of(modules.entry_source).get(name)
    return modules.entry if line is None else f"{modules.entry}:{line}"


def lines_of(source: str) -> dict[str, int]:
    """The line of each class, and of each name that a class body declares."""
    found: dict[object, int] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = node.lineno
            for member in node.body:
                names = member.targets if isinstance(member, ast.Assign) else [getattr(member, "target", member)]
                for name in names:
                    found[getattr(name, "name", None) or getattr(name, "id", "")] = member.lineno
    return {str(name): line for name, line in found.items()}


def _where(error: BaseException, modules: StagedModules) -> str | None:
    if isinstance(error, SyntaxError) and error.filename:
        path = modules.staged_path(error.filename)
        if path is not None:
            return f"{path}:{error.lineno}"
    found = None
    for frame in traceback.extract_tb(error.__traceback__):
        path = modules.staged_path(frame.filename)
        if path is not None:
            inside = "" if frame.name == "<module>" else f", in {frame.name}"
            found = f"{path}:{frame.lineno}{inside}"
    return found


def _first_lines(text: str, error: BaseException) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if isinstance(error, SyntaxError):
        lines = lines[-1:]  # those before it show the place, which is told apart
    joined = "; ".join(lines[:2])
    return joined if len(joined) <= _LONGEST else f"{joined[: _LONGEST - 3]}..."


def _missing_module(error: ModuleNotFoundError, modules: StagedModules) -> str:
    name = str(error.name)
    candidates = [f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__init__.py"]
    for folder in modules.folders:
        for candidate in candidates:
            path = f"{folder}/{candidate}" if folder else candidate
            if os.path.isfile(modules.real_path(path)):
                return f"{path} is not staged, and what is committed must work without it: git add {path}"
    return f"no module named {name!r} in {sys.executable}: install it there, or choose another interpreter"
