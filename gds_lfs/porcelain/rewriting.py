"""History with other pointers: all branches and tags, through `git fast-export` and `git fast-import`.

Blobs are not part of the stream (`--no-data`), only their ids; those of pointers and of .gitattributes are exchanged
on the way, and everything else passes through as it is. The old tips are kept under refs/original/, as git
filter-branch does, until someone removes them.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from typing import IO, TYPE_CHECKING, NamedTuple

from gds_lfs.content.pointer import MAX_SIZE
from gds_lfs.errors import ConfigError, GitError
from gds_lfs.git.index import write_blobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from gds_lfs.content.hashing import Oid
    from gds_lfs.content.pointer import Pointer
    from gds_lfs.porcelain.migrate import Conversion
    from gds_lfs.porcelain.workspace import Workspace

_BACKUP = "refs/original/"
_REFS = ("refs/heads/", "refs/tags/")
_MODIFY = re.compile(rb"M (100644|100755) ([0-9a-f]{40,64}) (.*\n)", re.DOTALL)


class Rewriting:
    """The history of one repository on its way from one form of pointers to the other.

    Raises ConfigError where the work tree has changes, HEAD is on no branch, or an earlier rewriting has not been
    cleaned up.
    """

    def __init__(self, workspace: Workspace, conversion: Conversion) -> None:
        self._repo = workspace.repo
        self._conversion = conversion
        if self._repo.run("status", "--porcelain", "--untracked-files=no"):
            raise ConfigError("the work tree has changes: commit or stash them, then rewrite history")
        if not self._repo.run("symbolic-ref", "-q", "HEAD", check=False):
            raise ConfigError("HEAD is on no branch: check one out, then rewrite history")
        if self._refs(_BACKUP):
            raise ConfigError(
                f"{_BACKUP} still holds the branches of before another rewriting. Remove them if all is well:\n"
                f"git for-each-ref --format='delete %(refname)' {_BACKUP} | git update-ref --stdin"
            )
        self._tips = {name: sha for prefix in _REFS for name, sha in self._refs(prefix).items()}
        paths = dict(self._repo.reachable_blobs(list(self._tips)) if self._tips else [])
        self._texts: dict[bytes, bytes] = {}
        self._pointers: dict[bytes, Pointer] = {}
        for sha, text in self._repo.small_blobs(paths, MAX_SIZE):
            known = conversion.old.recognise(text)
            if known is not None:
                self._pointers[sha] = known
                self._texts[sha] = conversion.text(known)
        self._paths = paths
        files = {sha for sha, path in paths.items() if path.rpartition(b"/")[2] == b".gitattributes"}
        for sha, text in self._repo.blobs(files):
            changed = conversion.attributes(text)
            if changed != text:
                self._texts[sha] = changed

    def contents(self) -> dict[Oid, bytes]:
        """The contents that history points to, each with a path."""
        return {known.oid: self._paths[sha] for sha, known in self._pointers.items() if known.size}

    def run(self) -> int:
        """Rewrite all branches and tags; the number of commits that were read. Raises GitError."""
        if not self._tips:
            return 0
        new = dict(zip(self._texts, write_blobs(self._repo, list(self._texts.values())), strict=True))
        backup = "".join(f"create {_BACKUP}{name} {sha}\n" for name, sha in self._tips.items())
        self._repo.run("update-ref", "--stdin", input=backup.encode())
        export = self._start(
            "fast-export", "--no-data", "--reencode=no", "--signed-tags=strip", "--tag-of-filtered-object=rewrite",
            "--use-done-feature", "--branches", "--tags",
        )  # fmt: skip
        load = self._start("fast-import", "--quiet", "--force")
        for unused in (export.stdin, load.stdout):
            unused.close()
        commits = 0
        with contextlib.suppress(BrokenPipeError), export.stdout as source, load.stdin as target:
            commits = _exchange(source, target, new)
        if export.wait() or load.wait():
            self._put_back()
            raise GitError("git fast-import could not write the new history; the branches are as they were")
        return commits

    def _put_back(self) -> None:
        lines = [f"update {name} {sha}\ndelete {_BACKUP}{name}\n" for name, sha in self._tips.items()]
        self._repo.run("update-ref", "--stdin", input="".join(lines).encode())

    def _refs(self, prefix: str) -> dict[str, str]:
        lines = self._repo.run("for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()
        return dict(os.fsdecode(line).rsplit(" ", 1) for line in lines)

    def _start(self, *args: str) -> _Piped:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            ["git", *args], cwd=self._repo.folder, env=self._repo.environment(), stdin=pipe, stdout=pipe
        )
        assert process.stdin is not None
        assert process.stdout is not None
        return _Piped(process.stdin, process.stdout, process.wait)


class _Piped(NamedTuple):
    """A process between two pipes."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    wait: Callable[[], int]


def _exchange(source: IO[bytes], target: IO[bytes], new: dict[bytes, bytes]) -> int:
    """Copy a fast-export stream with other blobs; the number of commits in it."""
    commits = 0
    for line in source:
        match = _MODIFY.fullmatch(line)
        if match is not None and match[2] in new:
            target.write(b"M %s %s %s" % (match[1], new[match[2]], match[3]))
        else:
            target.write(line)
        if line.startswith(b"commit "):
            commits += 1
        if line.startswith(b"data "):
            left = int(line[5:])
            while left:
                piece = source.read(min(left, 1 << 20))
                if not piece:
                    return commits  # fast-import misses its "done" and refuses
                target.write(piece)
                left -= len(piece)
    return commits
