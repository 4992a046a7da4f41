"""Making one virtual environment, with uv or else with pip.

Both run in the folder of the requirements file, where its relative paths and the messages about it mean something.
Neither is given the variables that git sets for hooks, or those of an active environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

from gds_lfs.dataset.install_failure import Attempt, EnvironmentFailure, explain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gds_lfs.dataset.interpreters import Interpreter
    from gds_lfs.dataset.requirements import Needed

_KEPT = 1 << 18
"""Bytes of output that a failure is told from; the last ones say it."""

_SET = {
    "NO_COLOR": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_PROGRESS_BAR": "off",
    "UV_NO_PROGRESS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_COMPILE_BYTECODE": "1",  # the code is run by processes that write none
}
_UNSET = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")
_DOUBTED = ("conflict", "requirement", "wrong_python")


class Installer:
    """Builds environments of one interpreter for one requirements file; what is printed goes to `on_output`."""

    def __init__(
        self, uv: str | None, interpreter: Interpreter, requirements: Path, on_output: Callable[[bytes], None]
    ) -> None:
        self._uv = uv
        self._interpreter = interpreter
        self._requirements = requirements
        self._on_output = on_output

    @property
    def python(self) -> str:
        """What the environments are made with: `Python 3.11.7`."""
        return str(self._interpreter)

    def build(self, folder: Path, added: Needed | None) -> None:
        """Make the environment in `folder`, which must not exist, with what is required and the package `added`.

        Raises EnvironmentFailure; the folder may then hold anything.
        """
        self._make(folder)
        code, output = self._install(folder, [] if added is None else [str(added)])
        if code == 0:
            return
        failure = self._explain(code, output)
        if added is None or failure.kind not in _DOUBTED or added.name not in output:
            raise failure
        self._on_output(f"trying without {added}, to tell whose conflict it is\n".encode())
        alone, _ = self._install(folder, ["--dry-run"])
        if alone != 0:
            raise failure
        raise EnvironmentFailure(
            "loader_conflict",
            f"{self._requirements.name} can be installed, but not beside {added}, which this dataset needs: "
            + failure.headline,
            f"let {self._requirements.name} name a {added.name} that suits it, loosen what stands against it, "
            "or choose an older Python (pythonVersion in leap.yaml: py310 goes with older packages)",
            failure.detail,
        )

    def _make(self, folder: Path) -> None:
        python = self._interpreter.path
        if self._uv is not None:
            command = [self._uv, "venv", "--quiet", "--no-project", "--python", python, str(folder)]
        else:
            command = [python, "-I", "-m", "venv", str(folder)]
        code, output = self._run(command)
        if code == 0:
            return
        failure = self._explain(code, output)
        if failure.kind in ("environment", "network"):
            raise failure
        advice = "choose another Python: git config datasets.python <path>"
        if "ensurepip" in output:
            minor = ".".join(map(str, self._interpreter.minor))
            advice = f"install uv, or what this Python lacks (on Debian: apt install python{minor}-venv)"
        raise EnvironmentFailure(
            "environment",
            f"{self.python} ({python}) cannot make a virtual environment",
            advice,
            failure.detail,
        )

    def _install(self, folder: Path, more: list[str]) -> tuple[int, str]:
        python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        if self._uv is not None:
            command = [self._uv, "pip", "install", "--python", python]
        else:
            command = [python, "-I", "-m", "pip", "install"]
        return self._run([*command, "-r", self._requirements.name, *more])

    def _explain(self, code: int, output: str) -> EnvironmentFailure:
        if code < 0:
            name = signal.Signals(-code).name
            return EnvironmentFailure("environment", f"the installer was ended by {name}", "try again", output[-2000:])
        text = self._requirements.read_text(encoding="utf-8", errors="replace")
        return explain(Attempt(output, self.python, text, self._requirements.name))

    def _run(self, command: list[str]) -> tuple[int, str]:
        """The exit code, and what was printed last."""
        kept = b""
        with subprocess.Popen(
            command,
            cwd=self._requirements.parent,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdout is not None  # a pipe, as asked for
            try:
                while data := os.read(process.stdout.fileno(), 1 << 16):
                    kept = (kept + data)[-_KEPT:]
                    self._on_output(data)
            except BaseException:
                process.kill()
                raise
        return process.returncode, kept.decode("utf-8", "replace")


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _UNSET and not name.startswith("GIT_")}
    return {**kept, **_SET}
