"""Python interpreters: which version one is, and where another version stands on this machine.

Nothing is downloaded here. A version is (major, minor).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.dataset.install_failure import EnvironmentFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gds_lfs.dataset.requirements import Needed

_PROBE = (
    "import json, platform, sys, sysconfig; "
    "print(json.dumps([sys.executable, list(sys.version_info[:3]), platform.python_implementation(), "
    "sysconfig.get_platform()]))"
)
_PROBE_SECONDS = 30
WRONG = "wrong_python"


class Interpreter(NamedTuple):
    """A Python that answered."""

    path: str
    version: tuple[int, int, int]
    implementation: str
    platform: str

    @property
    def minor(self) -> tuple[int, int]:
        return self.version[:2]

    def __str__(self) -> str:
        return f"Python {'.'.join(map(str, self.version))}"


def probe(python: str) -> Interpreter | None:
    """What this program says it is; None when it is no Python that runs."""
    try:
        # -I: the user's PYTHON* variables and folder change nothing.
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True
        )
        path, version, implementation, platform = json.loads(done.stdout)
        major, minor, micro = version
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Interpreter(path or python, (major, minor, micro), implementation, platform)


def choose(python: str, wanted: tuple[int, int] | None, needed: Needed | None, uv: str | None) -> Interpreter:
    """`python` where it will do, else another on this machine that does.

    `wanted` is the version the code asks for; a `needed` package has a range of its own. Raises EnvironmentFailure
    of the kind `wrong_python` when there is none.
    """
    own = probe(python)
    if own is None:
        raise EnvironmentFailure(
            WRONG, f"{python} is not a Python that can be run", "choose another: git config datasets.python <path>"
        )
    if problem(own, wanted, needed) is None:
        return own
    for version in _candidates(wanted, needed):
        for path in _places(version, uv):
            found = probe(path)
            if found is not None and problem(found, wanted, needed) is None:
                return found
    raise EnvironmentFailure(WRONG, str(problem(own, wanted, needed)), advice(wanted, needed))


def problem(interpreter: Interpreter, wanted: tuple[int, int] | None, needed: Needed | None) -> str | None:
    """Why this interpreter will not do, in one line; None when it does."""
    if wanted is not None and interpreter.minor != wanted:
        return f"leap.yaml asks for Python {_text(wanted)} (pythonVersion); {interpreter.path} is {interpreter}"
    if needed is not None and not needed.oldest_python <= interpreter.minor <= needed.newest_python:
        span = f"{_text(needed.oldest_python)} to {_text(needed.newest_python)}"
        return f"{needed.name} needs Python {span}; {interpreter.path} is {interpreter}"
    return None


def advice(wanted: tuple[int, int] | None, needed: Needed | None) -> str:
    """What to do about it."""
    version = wanted or (needed.newest_python if needed else None)
    name = f"Python {_text(version)}" if version else "another Python"
    install = f"install {name} (`uv python install {_text(version)}` is one way)" if version else f"install {name}"
    return f"{install}, or name one: git config datasets.python <path>"


def _candidates(wanted: tuple[int, int] | None, needed: Needed | None) -> Iterator[tuple[int, int]]:
    if wanted is not None:
        yield wanted
    elif needed is not None:
        major, newest = needed.newest_python
        for minor in range(newest, needed.oldest_python[1] - 1, -1):
            yield major, minor


def _places(version: tuple[int, int], uv: str | None) -> Iterator[str]:
    name = f"python{_text(version)}"
    on_path = shutil.which(name)
    if on_path is not None:
        yield on_path
    launcher = shutil.which("py") if os.name == "nt" else None
    if launcher is not None:
        yield from _answer([launcher, f"-{_text(version)}", "-c", "import sys; print(sys.executable)"])
    if uv is not None:
        yield from _answer([uv, "python", "find", "--no-python-downloads", "--no-project", "--system", _text(version)])


def _answer(command: list[str]) -> Iterator[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return
    if done.stdout.strip():
        yield done.stdout.strip()


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
