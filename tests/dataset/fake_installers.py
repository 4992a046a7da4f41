"""Programs that take the place of uv and of a Python: they note what they are asked, and do what a script says."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

UV = """\
import json, os, pathlib, sys, time
state = pathlib.Path({state!r})
arguments = sys.argv[1:]
with open(state / "calls", "a") as file:
    file.write(json.dumps([arguments, os.getcwd(), sorted(os.environ)]) + "\\n")
if arguments[0] == "venv":
    folder = pathlib.Path(arguments[-1])
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to({python!r})
elif arguments[:2] == ["pip", "install"]:
    print("installing", flush=True)
    time.sleep(float((state / "seconds").read_text()) if (state / "seconds").exists() else 0)
    failure = state / ("dry-run-fails" if "--dry-run" in arguments else "fails")
    if failure.exists():
        sys.exit(failure.read_text())
elif arguments[:2] == ["python", "find"]:
    if not (state / "found").exists():
        sys.exit("no such Python")
    print((state / "found").read_text())
"""

PYTHON = """\
import json, pathlib, sys
if sys.argv[1:4] == ["-I", "-m", "venv"]:
    python = pathlib.Path(sys.argv[4]) / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to({path!r})
elif sys.argv[2] == "-m":
    print("called with", *sys.argv[1:])
else:
    print(json.dumps([sys.argv[0], {version!r}, "CPython", "linux-x86_64"]))
"""


def program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


class FakeUv:
    """A uv that makes environments with nothing in them."""

    def __init__(self, root: Path) -> None:
        self.state = root / "uv-state"
        self.state.mkdir()
        self.path = program(root / "uv", UV.format(state=str(self.state), python=sys.executable))

    def set(self, name: str, text: str) -> None:
        (self.state / name).write_text(text, encoding="utf-8")

    @property
    def calls(self) -> list[tuple[list[str], str, list[str]]]:
        import json

        path = self.state / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def installs(self) -> list[list[str]]:
        return [call[0] for call in self.calls if call[0][:2] == ["pip", "install"]]


def fake_python(path: Path, version: tuple[int, int, int]) -> str:
    """A program that says it is this version of Python, and makes environments with nothing in them."""
    return program(path, PYTHON.format(version=list(version), path=str(path)))
