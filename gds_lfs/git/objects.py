"""Objects of the repository, read and written many at a time.

Reading goes through `git cat-file --batch` with the questions in a temporary file: git can neither block on
them nor we on it. In a partial clone a question about an absent object makes git fetch it, one connection
each, so there the ids are first reduced to those that are here. All raise GitError when git fails.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from gds_lfs.errors import GitError
from gds_lfs.git.process import running

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from gds_lfs.git.repo import Repo

# newer git refuses to fetch under this; older git needs `_askable`
_NO_FETCH = {"GIT_NO_LAZY_FETCH": "1"}


def blobs(repo: Repo, shas: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """(sha, content) of those that are here and are blobs."""
    return _contents(repo, _askable(repo, shas))


def small_blobs(repo: Repo, shas: Iterable[bytes], limit: int) -> Iterator[tuple[bytes, bytes]]:
    """(sha, content) of the blobs that are here and have at most `limit` bytes."""
    with _batch(repo, ["--batch-check"], _askable(repo, shas)) as output:
        small = [sha for sha, kind, size in map(_header, output) if kind == b"blob" and size <= limit]
    if small:
        yield from _contents(repo, small)


def reachable_blobs(repo: Repo, include: Sequence[str], exclude: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
    """See `Repo.reachable_blobs`."""
    unwanted = [rev for rev in exclude if not rev.startswith("--")]
    if unwanted:
        unwanted = _known_revisions(repo, unwanted)
    revisions = [rev for rev in include if not rev.startswith("--")] + [f"^{rev}" for rev in unwanted]
    options = [rev for rev in include if rev.startswith("--")]
    if hidden := [rev for rev in exclude if rev.startswith("--")]:
        options += ["--not", *hidden, "--not"]
    arguments = ["--objects", "--filter=object:type=blob", "--missing=allow-promisor", *options, "--stdin"]
    with _stream(repo, ["rev-list", *arguments], [os.fsencode(rev) for rev in revisions]) as output:
        for line in output:
            sha, blank, path = line.rstrip(b"\n").partition(b" ")
            if blank:  # commits come without a path
                yield sha, path


def _is_partial_clone(repo: Repo) -> bool:
    """Whether absent objects can be had from a promisor remote."""
    pattern = r"^(extensions\.partialclone|remote\..*\.(promisor|partialclonefilter))$"
    return repo.run("config", "--get-regexp", pattern, check=False) != b""


def present(repo: Repo, shas: Iterable[bytes]) -> list[bytes]:
    """The ids among `shas` whose objects are here; nothing is fetched."""
    with _batch(repo, ["--batch-check"], _askable(repo, shas)) as output:
        return [sha for sha, kind, _ in map(_header, output) if kind]


def _askable(repo: Repo, shas: Iterable[bytes]) -> list[bytes]:
    """The ids to ask about: all, or in a partial clone those that are here."""
    wanted = list(shas)
    if not wanted or not _is_partial_clone(repo):
        return wanted
    arguments = ["--objects", "--no-walk", "--ignore-missing", "--missing=allow-any", "--stdin"]
    with _stream(repo, ["rev-list", *arguments], wanted) as output:
        here = {line.split()[0] for line in output}
    return [sha for sha in wanted if sha in here]


def _known_revisions(repo: Repo, revisions: list[str]) -> list[str]:
    with _batch(repo, ["--batch-check"], [os.fsencode(rev) for rev in revisions]) as output:
        return [rev for rev, line in zip(revisions, output, strict=True) if _header(line)[1]]


def _contents(repo: Repo, shas: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    with _batch(repo, ["--batch"], shas) as output:
        for line in iter(output.readline, b""):
            sha, kind, size = _header(line)
            if kind:  # else it is absent
                content = output.read(size + 1)
                if len(content) != size + 1:
                    raise GitError("git cat-file ended unexpectedly")
                if kind == b"blob":
                    yield sha, content[:-1]


def _batch(repo: Repo, options: list[str], names: Sequence[bytes]) -> AbstractContextManager[IO[bytes]]:
    return _stream(repo, ["cat-file", "--buffer", *options], names)


@contextmanager
def _stream(repo: Repo, args: Sequence[str], lines: Sequence[bytes]) -> Iterator[IO[bytes]]:
    """The output of `git <args>` as a stream, with `lines` as its input. Raises GitError when git fails."""
    with tempfile.TemporaryFile() as questions:
        questions.write(b"".join(line + b"\n" for line in lines))
        questions.seek(0)
        with running(repo, args, stdin=questions, stdout=subprocess.PIPE, env=_NO_FETCH) as process:
            assert process.stdout is not None
            yield process.stdout


def _header(line: bytes) -> tuple[bytes, bytes, int]:
    """Id, type and size from a line of cat-file; an empty type for what is absent or ambiguous."""
    parts = line.split()
    if len(parts) == 3 and parts[2].isdigit():
        return parts[0], parts[1], int(parts[2])
    return parts[0] if parts else b"", b"", 0
