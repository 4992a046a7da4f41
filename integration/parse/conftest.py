"""Real code-loaders, and a package index to make environments from.

Without them these tests are skipped, but with CI=true they fail: there, nothing may be skipped.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from leap_machines import LOADERS, loader_python
from machines import BIN


def absent(message: str) -> None:
    pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)


@pytest.fixture(params=LOADERS)
def loader(request: pytest.FixtureRequest) -> Path:
    """A Python that has code-loader, of the oldest version that is supported and of the newest."""
    return found(request.param)


@pytest.fixture
def newest() -> Path:
    """A Python that has the newest code-loader."""
    return found("newest")


def found(name: str) -> Path:
    python = loader_python(name)
    if not python.exists():
        absent(f"{python} is not there (.ci/run makes it)")
    return python


@pytest.fixture(scope="session")
def index() -> None:
    """A package index that answers."""
    done = subprocess.run([BIN / "uv", "pip", "compile", "-"], input=b"six==1.17.0", capture_output=True, check=False)
    if done.returncode:
        absent(f"no package index: {done.stderr.decode()}")
