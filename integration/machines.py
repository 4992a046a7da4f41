"""Machines to test on: a HOME of their own, plain git, and the installed `git-datasets` on their PATH."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

BIN = Path(sys.executable).parent
GIT_DATASETS = BIN / "git-datasets"

Done = subprocess.CompletedProcess[str]


class Machine:
    """A user's machine. Commands run in `cwd` with a HOME that no other test sees."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.home.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        for key, value in {
            "user.name": "A Person",
            "user.email": "person@example.org",
            "init.defaultBranch": "main",
            "protocol.file.allow": "always",
            "advice.detachedHead": "false",
        }.items():
            self.run("git", "config", "--global", key, value, cwd=root)

    def run(
        self,
        *command: str | bytes | Path,
        cwd: Path,
        check: bool = True,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        done = subprocess.run(
            [os.fspath(part) for part in command],
            cwd=cwd,
            env={**self.env, **(env or {})},
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
            timeout=300,
        )
        assert "Traceback" not in done.stderr, done.stderr
        if check and done.returncode:
            raise AssertionError(f"{command} -> {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def git(self, cwd: Path, *args: str | bytes | Path, **options: object) -> Done:
        return self.run("git", *args, cwd=cwd, **options)  # type: ignore[arg-type]

    def gd(self, cwd: Path, *args: str | bytes | Path, **options: object) -> Done:
        return self.run("git", "datasets", *args, cwd=cwd, **options)  # type: ignore[arg-type]

    def repo(self, name: str = "work") -> Path:
        """A new repository in which nothing is set up yet."""
        self.git(self.root, "init", "-q", name)
        return self.root / name

    def bare(self, name: str = "origin.git") -> Path:
        self.git(self.root, "init", "-q", "--bare", name)
        return self.root / name


def is_clean(machine: Machine, repo: Path) -> bool:
    return machine.git(repo, "status", "--porcelain").stdout == ""


def digests(folder: Path) -> dict[str, str]:
    """Every file of a work tree by its path, as a hash of its content and mode; git's own files left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if ".git" in path.relative_to(folder).parts:
            continue
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link {path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() + oct(path.stat().st_mode & 0o777)
    return found


def blob(machine: Machine, repo: Path, name: str) -> str:
    """The text git stores under a name such as `HEAD:a.bin`."""
    return machine.git(repo, "cat-file", "blob", name).stdout


def pointer(content: bytes) -> str:
    return f"version git-datasets/1\noid sha256:{hashlib.sha256(content).hexdigest()}\nsize {len(content)}\n"


def tree(machine: Machine, repo: Path, rev: str = "HEAD") -> list[str]:
    return machine.git(repo, "ls-tree", "-r", "-z", "--name-only", rev).stdout.split("\0")[:-1]
