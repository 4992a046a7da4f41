"""Start git once and wait for it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from gds_lfs.errors import GitError, NotARepositoryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GIT_MISSING = "git was not found on PATH: install git, or add its folder to PATH"


def git(
    args: Sequence[str | bytes],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    data: bytes | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end. Its standard input is `data` or nothing: a filter's or hook's own input is not
    git's.

    Raises GitError when git cannot be started, NotARepositoryError when `cwd` is not there.
    """
    command = [os.fsencode("git"), *(os.fsencode(arg) for arg in args)]
    try:
        if data is None:
            return subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return subprocess.run(command, cwd=cwd, env=env, input=data, capture_output=True, check=False)
    except FileNotFoundError as error:
        if cwd is not None and not cwd.exists():
            raise NotARepositoryError(f"{cwd} is not there") from error
        raise GitError(GIT_MISSING) from error


def reason(complaints: bytes) -> str:
    """What git's complaints end with: its last "fatal: " or "error: ", and the advice after it, in one line."""
    lines = complaints.decode(errors="replace").strip().splitlines()
    start = next(
        (n for n in reversed(range(len(lines))) if lines[n].startswith(("fatal: ", "error: "))), len(lines) - 1
    )
    return " ".join(" ".join(lines[max(start, 0) :]).removeprefix("fatal: ").removeprefix("error: ").split())


def failure(args: Sequence[str | bytes], code: int, complaints: bytes) -> GitError:
    """The error for a git command that ended with `code`."""
    words = list(map(os.fsdecode, args))
    while words[:1] in (["-C"], ["-c"]):  # options before the verb that have a word of their own
        words = words[2:]
    verb = next((word for word in words if not word.startswith("-")), "")
    return GitError(f"git {verb}: {reason(complaints) or f'exit code {code}'}")
