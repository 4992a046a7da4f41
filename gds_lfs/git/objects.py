"""Objects of the repository, read and written many at a time.

Reading goes through `git cat-file --batch` with questions and answers in temporary files: git can neither block
on us nor we on it, and we are not woken for each of the two pieces in which it writes a small object. In a partial
clone a question about an absent object makes git fetch it, one connection each, so there the ids are first reduced to
those that are here. All raise GitError when git fails.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING

from gds_lfs.git.process import running

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gds_lfs.git.repo import Repo

# newer git refuses to fetch under this; older git needs `_askable`
_NO_FETCH = {"GIT_NO_LAZY_FETCH": "1"}

# what cat-file says of an object; of one that is absent or ambiguous it says something else
_OBJECT_LINE = re.compile(rb"([0-9a-f]+) ([a-z]+) ([0-9]+)\n")
_ID = re.compile(rb"^[0-9a-f]+", re.MULTILINE)
_OBJECT_AND_PATH = re.compile(rb"^([0-9a-f]+) (.*)$", re.MULTILINE)
_BLOB_LINE = re.compile(rb"^([0-9a-f]+) blob ([0-9]+)$", re.MULTILINE)


def blobs(repo: Repo, shas: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """(sha, content) of those that are here and are blobs."""
    return _contents(repo, _askable(repo, shas))


def small_blobs(repo: Repo, shas: Iterable[bytes], limit: int) -> Iterator[tuple[bytes, bytes]]:
    """(sha, content) of the blobs that are here and have at most `limit` bytes."""
    told = _batch(repo, "--batch-check", _askable(repo, shas))
    small = [sha for sha, size in _BLOB_LINE.findall(told) if int(size) <= limit]
    return _contents(repo, small)


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
    told = _answers(repo, ["rev-list", *arguments], [os.fsencode(rev) for rev in revisions])
    yield from _OBJECT_AND_PATH.findall(told)  # commits come without a path


def _is_partial_clone(repo: Repo) -> bool:
    """Whether absent objects can be had from a promisor remote."""
    pattern = r"^(extensions\.partialclone|remote\..*\.(promisor|partialclonefilter))$"
    return repo.run("config", "--get-regexp", pattern, check=False) != b""


def present(repo: Repo, shas: Iterable[bytes]) -> list[bytes]:
    """The ids among `shas` whose objects are here; nothing is fetched."""
    return [sha for sha, _, _ in _OBJECT_LINE.findall(_batch(repo, "--batch-check", _askable(repo, shas)))]


def _askable(repo: Repo, shas: Iterable[bytes]) -> list[bytes]:
    """The ids to ask about: all, or in a partial clone those that are here."""
    wanted = list(shas)
    if not wanted or not _is_partial_clone(repo):
        return wanted
    arguments = ["--objects", "--no-walk", "--ignore-missing", "--missing=allow-any", "--stdin"]
    here = set(_ID.findall(_answers(repo, ["rev-list", *arguments], wanted)))
    return [sha for sha in wanted if sha in here]


def _known_revisions(repo: Repo, revisions: list[str]) -> list[str]:
    lines = _batch(repo, "--batch-check", [os.fsencode(rev) for rev in revisions]).splitlines(keepends=True)
    return [rev for rev, line in zip(revisions, lines, strict=True) if _OBJECT_LINE.fullmatch(line)]


def _contents(repo: Repo, shas: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    data = _batch(repo, "--batch", shas)
    position = 0
    while position < len(data):
        header = _OBJECT_LINE.match(data, position)
        if header is None:
            position = data.index(b"\n", position) + 1
            continue
        start, end = header.end(), header.end() + int(header[3])
        if header[2] == b"blob":
            yield header[1], data[start:end]
        position = end + 1


def _batch(repo: Repo, option: str, names: Sequence[bytes]) -> bytes:
    return _answers(repo, ["cat-file", "--buffer", option], names) if names else b""


def _answers(repo: Repo, args: Sequence[str], lines: Sequence[bytes]) -> bytes:
    """What `git <args>` says to these lines. Raises GitError when git fails."""
    with tempfile.TemporaryFile() as questions, tempfile.TemporaryFile() as answers:
        questions.write(b"".join(line + b"\n" for line in lines))
        questions.seek(0)
        with running(repo, args, stdin=questions, stdout=answers, env=_NO_FETCH):
            pass
        answers.seek(0)
        return answers.read()
