"""A repository, seen through git's own plumbing.

One `git rev-parse` answers where everything is, so linked worktrees, submodules, bare repositories, GIT_DIR
and GIT_WORK_TREE need no code of ours. Commands run at the top of the work tree (in the git dir where there
is none), with the variables that name paths made absolute, so that what was relative to the caller's folder
stays right.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.errors import GitError, NotARepositoryError
from gds_lfs.git import config
from gds_lfs.git.command import failure, git, reason
from gds_lfs.git.paths import to_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# rev-parse prints options it does not know as they are: a separator that keeps paths with newlines apart
_SEPARATOR = "--git-datasets"
_QUESTIONS = (
    ("--git-dir",),
    ("--git-common-dir",),
    ("--git-path", "index"),
    ("--git-path", "hooks"),
    ("--show-prefix",),
    ("--show-object-format",),
    ("--show-toplevel",),
)
# more paths than this are picked from the whole list here: a command line has a limit
_MANY_PATHS = 50
# what ls-tree and ls-files -s say with -z
_TREE_LINE = re.compile(rb"([0-7]+) [a-z]+ ([0-9a-f]+)\t([^\0]*)\0")
_INDEX_LINE = re.compile(rb"([0-7]+) ([0-9a-f]+) ([0-3])\t([^\0]*)\0")


class Entry(NamedTuple):
    """One line of the index or of a tree; `sha` is in hex, `stage` is 0 unless the path is in conflict."""

    mode: int
    sha: bytes
    stage: int
    path: bytes


class Change(NamedTuple):
    """One staged change. `status` is git's letter: A, D, M, T or U; mode 0 and a sha of zeros mean absent."""

    status: str
    old_mode: int
    new_mode: int
    old_sha: bytes
    new_sha: bytes
    path: bytes


class Repo:
    """Where a repository's parts are, and git commands that run in it.

    `top` is the work tree (None where there is none), `index_path` honours GIT_INDEX_FILE and `hooks_path`
    core.hooksPath, `prefix` is the folder the user stands in, relative to the top (empty or ending with a slash),
    `object_format` is sha1 or sha256.
    """

    def __init__(
        self,
        *,
        top: Path | None,
        git_dir: Path,
        common_dir: Path,
        index_path: Path,
        hooks_path: Path,
        prefix: bytes,
        object_format: str,
    ) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.index_path = index_path
        self.hooks_path = hooks_path
        self.prefix = prefix
        self.object_format = object_format
        self._environment = config.absolute_git_paths(
            GIT_DIR=git_dir, GIT_COMMON_DIR=common_dir, GIT_WORK_TREE=top, GIT_INDEX_FILE=index_path
        )

    @classmethod
    def discover(cls, cwd: Path | None = None) -> Repo:
        """The repository around `cwd`. Raises NotARepositoryError with git's own words when there is none."""
        questions = [argument for question in _QUESTIONS for argument in (*question, _SEPARATOR)]
        result = git(["rev-parse", "--path-format=absolute", *questions], cwd=cwd)
        values = result.stdout.split(_SEPARATOR.encode() + b"\n")
        if len(values) < len(_QUESTIONS):
            raise NotARepositoryError(reason(result.stderr) or "not in a git repository")
        values = [value.removesuffix(b"\n") for value in values]
        prefix, object_format, top = values[4:7]  # the last is empty outside a work tree, where this question fails
        git_dir, common_dir, index, hooks = (Path(os.fsdecode(value)) for value in values[:4])
        return cls(
            top=Path(os.fsdecode(top)) if top else None,
            git_dir=git_dir,
            common_dir=common_dir,
            index_path=index,
            hooks_path=hooks,
            prefix=prefix,
            object_format=object_format.decode("ascii"),
        )

    @property
    def work_tree(self) -> Path:
        """The top of the work tree. Raises NotARepositoryError in a bare repository."""
        if self.top is None:
            raise NotARepositoryError(f"{self.git_dir} has no work tree, and this needs one")
        return self.top

    @property
    def folder(self) -> Path:
        """Where commands run."""
        return self.top or self.git_dir

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str] | None:
        """The environment for a git command; None when it is ours unchanged."""
        if extra is None and not self._environment:
            return None
        return config.environment({**self._environment, **(extra or {})})

    def run(
        self,
        *args: str | bytes,
        input: bytes | None = None,  # noqa: A002 - the word that subprocess uses
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> bytes:
        """What `git <args>` prints. Raises GitError with git's last line when it fails, unless `check` is False."""
        result = git(args, cwd=self.folder, env=self.environment(env), data=input)
        if check and result.returncode != 0:
            raise failure(args, result.returncode, result.stderr)
        return result.stdout

    @cached_property
    def _root(self) -> bytes:
        return os.path.join(os.fsencode(self.work_tree), b"")

    def absolute(self, path: bytes) -> bytes:
        """Where a git path is on disk. Raises NotARepositoryError in a bare repository."""
        return self._root + path

    def relative(self, path: str) -> bytes:
        """The git path of what a user typed in the folder they stand in. Raises GitError when it is outside."""
        top = os.fspath(self.work_tree)
        if not os.path.isabs(path):
            found = os.path.normpath(os.path.join(os.fsdecode(self.prefix), path))
        else:
            found = os.path.relpath(os.path.normpath(path), top)
            if _is_outside(found):  # perhaps the same place, reached through a symbolic link
                parent, name = os.path.split(os.path.normpath(path))
                found = os.path.relpath(os.path.join(os.path.realpath(parent), name), os.path.realpath(top))
        if _is_outside(found):
            raise GitError(f"{path} is outside the repository at {top}")
        return b"" if found == os.curdir else to_git(found)

    def from_here(self, path: bytes) -> bytes:
        """A git path as seen from the folder the user stands in."""
        return posixpath.relpath(path, self.prefix) if self.prefix else path

    def head(self) -> bytes | None:
        """The commit that HEAD names, in hex; None on a branch without a commit."""
        return self.run("rev-parse", "--quiet", "--verify", "HEAD^{commit}", check=False).strip() or None

    def staged(self, paths: Sequence[bytes] | None = None, index: Path | None = None) -> Iterator[Entry]:
        """Entries of the index (of another index file), in its order; only those at or under `paths` when given."""
        if paths is not None and not paths:
            return
        literal, wanted = _narrowed(paths)
        output = self.run("--literal-pathspecs", "ls-files", "-s", "-z", "--", *literal, env=index_variable(index))
        for mode, sha, stage, path in _INDEX_LINE.findall(output):
            if wanted is None or _is_under(path, wanted):
                yield Entry(int(mode, 8), sha, int(stage), path)

    def tree(self, rev: str, paths: Sequence[bytes] | None = None) -> Iterator[Entry]:
        """Files, links and submodules of a tree-ish, recursively; only those at or under `paths` when given."""
        if paths is not None and not paths:
            return
        literal, wanted = _narrowed(paths)
        output = self.run("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", rev, *literal)
        for mode, sha, path in _TREE_LINE.findall(output):
            if wanted is None or _is_under(path, wanted):
                yield Entry(int(mode, 8), sha, 0, path)

    def changed_staged(self, against: str = "HEAD", index: Path | None = None) -> Iterator[Change]:
        """What the index changes against a tree-ish; against nothing when HEAD has no commit yet. No renames."""
        base = self.empty_tree if against == "HEAD" and self.head() is None else against
        options = ["--cached", "-z", "--no-renames", "--end-of-options"]
        output = self.run("diff-index", *options, base, env=index_variable(index))
        fields = iter(output.split(b"\0")[:-1])
        for meta in fields:
            old_mode, new_mode, old_sha, new_sha, status = meta[1:].split(b" ")
            yield Change(status[:1].decode(), int(old_mode, 8), int(new_mode, 8), old_sha, new_sha, next(fields))

    def blob_id(self, content: bytes) -> bytes:
        """The id, in hex, that git gives to a blob of this content."""
        return hashlib.new(self.object_format, b"blob %d\0" % len(content) + content).hexdigest().encode()

    @property
    def empty_tree(self) -> str:
        """The id of a tree without entries, which git knows in every repository."""
        return hashlib.new(self.object_format, b"tree 0\0").hexdigest()

    def blobs(self, shas: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """(sha, content) of the blobs among `shas` that are here, in their order; nothing is fetched."""
        from gds_lfs.git import objects

        return objects.blobs(self, shas)

    def small_blobs(self, shas: Iterable[bytes], limit: int = 1024) -> Iterator[tuple[bytes, bytes]]:
        """As `blobs`, but only those of at most `limit` bytes; the content of others is never read."""
        from gds_lfs.git import objects

        return objects.small_blobs(self, shas, limit)

    def present(self, shas: Iterable[bytes]) -> set[bytes]:
        """Those of the objects that are here; nothing is fetched."""
        from gds_lfs.git import objects

        return set(objects.present(self, shas))

    def reachable_blobs(self, include: Sequence[str], exclude: Sequence[str] = ()) -> Iterator[tuple[bytes, bytes]]:
        """(sha, path) of every blob reachable from `include` and not from `exclude`.

        Both take revisions, and options of rev-list that stand for many (`--all`, `--remotes=origin`).
        Excluded commits that are not here are ignored: the other side may be ahead of us. A path is cut at a
        newline.
        """
        from gds_lfs.git import objects

        return objects.reachable_blobs(self, include, exclude)


def index_variable(index: Path | None) -> dict[str, str] | None:
    """What makes a git command use another index file; None for the repository's own."""
    return None if index is None else {"GIT_INDEX_FILE": os.path.abspath(index)}


def _is_outside(path: str) -> bool:
    return path == os.pardir or path.startswith(os.pardir + os.sep) or os.path.isabs(path)


def _narrowed(paths: Sequence[bytes] | None) -> tuple[Sequence[bytes], frozenset[bytes] | None]:
    """The paths to ask git for, none for all, and those to pick from its answer, None for all of it."""
    if paths is None or b"" in paths:
        return (), None
    return (paths, None) if len(paths) <= _MANY_PATHS else ((), frozenset(paths))


def _is_under(path: bytes, wanted: frozenset[bytes]) -> bool:
    """Whether `path` is one of `wanted` or lies in one of them."""
    if path in wanted:
        return True
    cut = path.rfind(b"/")
    while cut > 0:
        if path[:cut] in wanted:
            return True
        cut = path.rfind(b"/", 0, cut)
    return False
