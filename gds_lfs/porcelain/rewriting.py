"""History with other pointers: all branches and tags, through `git fast-export` and `git fast-import`.

Blobs are not part of the stream (`--no-data`), only their ids; those of pointers and of .gitattributes are exchanged
on the way, and everything else passes through as it is. The old tips are kept under refs/original/, as git
filter-branch does, until someone removes them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from gds_lfs.content.pointer import MAX_SIZE
from gds_lfs.errors import ConfigError, GitError
from gds_lfs.git.index import write_blobs
from gds_lfs.git.process import running
from gds_lfs.porcelain.history import History, commits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gds_lfs.content.hashing import Oid
    from gds_lfs.content.pointer import Pointer
    from gds_lfs.git.repo import Repo
    from gds_lfs.porcelain.migrate import Conversion
    from gds_lfs.porcelain.workspace import Workspace

_BACKUP = "refs/original/"
_REFS = ("refs/heads/", "refs/tags/")
_EXPORT = (
    "fast-export", "--no-data", "--show-original-ids", "--reencode=no", "--signed-tags=strip",
    "--tag-of-filtered-object=rewrite", "--use-done-feature", "--branches", "--tags",
)  # fmt: skip


class Rewriting:
    """The history of one repository on its way from one form of pointers to the other; to be closed.

    Raises ConfigError where the work tree has changes, HEAD is on no branch, another work tree has a branch checked
    out, or an earlier rewriting has not been cleaned up; GitError.
    """

    def __init__(self, workspace: Workspace, conversion: Conversion) -> None:
        self._repo = workspace.repo
        self._conversion = conversion
        self._check()
        self._tips = {name: sha for prefix in _REFS for name, sha in self._refs(prefix).items()}
        with ExitStack() as resources:
            self._stream = resources.enter_context(tempfile.TemporaryFile())
            with running(self._repo, _EXPORT, stdin=subprocess.DEVNULL, stdout=self._stream):
                pass
            self._known = self._look_like_pointers()
            self._stream.seek(0)
            self._history = History(self._repo, self._stream, self._known, conversion.old.filter)
            self._resources = resources.pop_all()

    def close(self) -> None:
        """Forget the history that was read."""
        self._resources.close()

    def contents(self) -> dict[Oid, bytes]:
        """The contents that history points to, each with a path."""
        found = ((self._known[sha], path) for sha, path in self._history.pointers.items())
        return {known.oid: path for known, path in found if known.size}

    def run(self) -> int:
        """Rewrite all branches and tags; the number of commits that were read. Raises GitError."""
        if not self._tips:
            return 0
        pointers = self._written({sha: self._conversion.text(self._known[sha]) for sha in self._history.pointers})
        texts = dict(self._repo.blobs(self._history.attribute_files))
        files = self._written({sha: self._conversion.attributes(text) for sha, text in texts.items()})
        backup = "".join(f"create {_BACKUP}{name} {sha}\n" for name, sha in self._tips.items())
        self._repo.run("update-ref", "--stdin", input=backup.encode())
        try:
            self._load(pointers, files)
        except BaseException as error:
            self._put_back()
            if isinstance(error, GitError):
                raise GitError(f"{error}; the branches are as they were") from error
            raise
        return self._history.commits

    def _check(self) -> None:
        if self._repo.run("status", "--porcelain", "--untracked-files=no"):
            raise ConfigError("the work tree has changes: commit or stash them, then rewrite history")
        if not self._repo.run("symbolic-ref", "-q", "HEAD", check=False):
            raise ConfigError("HEAD is on no branch: check one out, then rewrite history")
        elsewhere = ", ".join(f"'{branch}' at '{folder}'" for branch, folder in _checked_out_elsewhere(self._repo))
        if elsewhere:
            raise ConfigError(
                f"cannot rewrite branches that are checked out in other work trees: {elsewhere}\n"
                f"Run `git switch --detach` there, or remove them with `git worktree remove`, then rewrite history"
            )
        if self._refs(_BACKUP):
            raise ConfigError(
                f"{_BACKUP} still holds the branches of before another rewriting. Remove them if all is well:\n"
                f"git for-each-ref --format='delete %(refname)' {_BACKUP} | git update-ref --stdin"
            )

    def _look_like_pointers(self) -> dict[bytes, Pointer]:
        """The blobs of history that hold a pointer's text, wherever they stand."""
        self._stream.seek(0)
        shas = {change.sha for commit in commits(self._stream) for change in commit.changes if change.sha}
        texts = self._repo.small_blobs(shas, MAX_SIZE)
        found = ((sha, self._conversion.old.recognise(text)) for sha, text in texts)
        return {sha: known for sha, known in found if known is not None}

    def _written(self, texts: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """The ids of the new blobs, by those of the old."""
        return dict(zip(texts, write_blobs(self._repo, texts.values()), strict=True))

    def _load(self, pointers: dict[bytes, bytes], files: dict[bytes, bytes]) -> None:
        self._stream.seek(0)
        command = ("fast-import", "--quiet", "--force")
        with running(self._repo, command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as load:
            assert load.stdin is not None
            with suppress(BrokenPipeError), load.stdin as target:  # git's exit code and its words tell why
                self._history.write(self._stream, target, pointers, files)

    def _put_back(self) -> None:
        lines = [f"update {name} {sha}\ndelete {_BACKUP}{name}\n" for name, sha in self._tips.items()]
        self._repo.run("update-ref", "--stdin", input="".join(lines).encode())

    def _refs(self, prefix: str) -> dict[str, str]:
        lines = self._repo.run("for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()
        return dict(os.fsdecode(line).rsplit(" ", 1) for line in lines)


def _checked_out_elsewhere(repo: Repo) -> Iterator[tuple[str, str]]:
    """Branches that other work trees of the repository have checked out, and where these are."""
    main = os.path.realpath(repo.git_dir) == os.path.realpath(repo.common_dir)
    here = os.path.realpath(repo.work_tree)
    for number, block in enumerate(os.fsdecode(repo.run("worktree", "list", "--porcelain")).split("\n\n")):
        told = dict(line.partition(" ")[::2] for line in block.split("\n"))
        folder = told.get("worktree", "")
        # the first is the main one, whose path git guesses from its git dir: wrong in a submodule
        ours = main if number == 0 else os.path.realpath(folder) == here
        if "branch" in told and not ours:
            yield told["branch"].removeprefix("refs/heads/"), folder
