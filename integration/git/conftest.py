"""A git of its own for each test: an empty home, no system config, no variables from outside."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

Git = Callable[..., str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (folder / ".gitconfig").write_text(
        "[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n'
    )
    return folder


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Run git in `cwd` (default: the repository `t`) and give its output; a failure fails the test."""

    def run(*args: str | bytes, cwd: Path | None = None, data: bytes | None = None) -> str:
        result = subprocess.run(["git", *args], cwd=cwd or tmp_path / "t", input=data, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr.decode()
        return result.stdout.decode(errors="surrogateescape")

    return run


@pytest.fixture
def top(tmp_path: Path, git: Git) -> Path:
    """A new repository, `t`."""
    git("init", "-q", "t", cwd=tmp_path)
    return tmp_path / "t"
