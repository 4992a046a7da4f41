"""Machines on which Tensorleap integrations are parsed, and the Pythons with code-loader that `.ci/run` makes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from machines import Machine
from s3_servers import SERVERS

from gds_lfs.dataset.parse.loader import TESTED

LOADERS = dict(zip(("oldest", "newest"), TESTED, strict=True))
"""The versions of code-loader, by the name of their environment."""

_SCRIPTS = Path(__file__).parent / "parse" / "scripts"


def loader_python(name: str) -> Path:
    """The Python of one of those environments (in the folder that `s3_servers` speaks of); it need not be there."""
    return SERVERS / f"code-loader-{name}" / "bin" / "python"


class LeapMachine(Machine):
    """A machine with a repository, in which an integration is parsed by a Python of ours."""

    def __init__(self, root: Path, python: Path | None) -> None:
        super().__init__(root)
        # What this machine needs to reach a package index.
        self.env |= {name: each for name, each in os.environ.items() if name.startswith(("PIP_", "SSL_CERT", "UV_"))}
        self.env["GIT_DATASETS_CACHE"] = str(root / "cache")
        self.work = self.repo()
        if python is not None:
            self.git(self.work, "config", "datasets.python", python)

    def add_script(self, name: str) -> None:
        """Stage one of the scripts, in a folder of its name."""
        shutil.copytree(_SCRIPTS / name, self.work / name, ignore=shutil.ignore_patterns("__pycache__"))
        self.git(self.work, "add", name)

    def add(self, files: dict[str, str]) -> None:
        """Write files and stage them."""
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            self.git(self.work, "add", "-f", name)
