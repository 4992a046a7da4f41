"""Which files of a history are the pointers of one filter, as the attributes of each commit say.

Commits are read from a stream of `git fast-export --no-data --show-original-ids`: each with what differs from its first
parent. A text that merely looks like a pointer is one only where git gives its path the filter, and that changes with
the .gitattributes alone. So git is asked once for each set of them, however many commits share it; and where a commit
changes the set, files that it does not touch can become pointers, or cease to be.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, NamedTuple

from gds_lfs.git import attributes
from gds_lfs.git.paths import c_quote, c_unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gds_lfs.content.pointer import Pointer
    from gds_lfs.git.repo import Entry, Repo

#: Paths and blobs of all .gitattributes in a tree.
AttributeFiles = frozenset[tuple[bytes, bytes]]

_REGULAR = (0o100644, 0o100755)
_REGULAR_MODES = [b"%o" % mode for mode in _REGULAR]
_MODIFY = re.compile(rb"M ([0-7]{6}) ([0-9a-f]{40,64}) (.*)\n", re.DOTALL)


class Change(NamedTuple):
    """A path that a commit changes. `sha` is the blob of the file there now, empty where no regular file is."""

    sha: bytes
    path: bytes


class Commit(NamedTuple):
    """One commit of a stream. `parent` is the mark of its first parent, empty for a root."""

    sha: bytes
    mark: bytes
    parent: bytes
    changes: list[Change]


class Turn(NamedTuple):
    """A commit whose .gitattributes differ from its first parent's."""

    sha: bytes
    before: AttributeFiles
    after: AttributeFiles


class Era(NamedTuple):
    """The commits that share a set of .gitattributes, by one of them.

    `changes` are theirs to what looks like pointers; `paths` also have what such commits may have from their parents.
    """

    sha: bytes
    changes: set[Change]
    paths: set[bytes]


class History:
    """The pointers and .gitattributes in a stream's commits. `known` are the blobs that look like pointers.

    Raises GitError.
    """

    def __init__(self, repo: Repo, stream: IO[bytes], known: Mapping[bytes, Pointer], name: str) -> None:
        self._repo = repo
        self._known = known
        self._files: dict[bytes, AttributeFiles] = {b"": frozenset()}  # by mark
        self._turns: dict[bytes, Turn] = {}  # by mark
        eras = self._eras(commits(stream))
        self._filtered = {
            files: attributes.check(repo, era.paths, era.sha.decode(), name=name) for files, era in eras.items()
        }
        #: Pointers of the filter, each with a path.
        self.pointers = {
            sha: path for files, era in eras.items() for sha, path in era.changes if self._filtered[files][path]
        }
        for turn in self._turns.values():
            self.pointers.update((entry.sha, entry.path) for entry, filtered in self._turned(turn) if filtered)

    @property
    def commits(self) -> int:
        """How many there are."""
        return len(self._files) - 1

    @property
    def attribute_files(self) -> set[bytes]:
        """The blobs of all .gitattributes."""
        return {sha for files in self._filtered for _, sha in files}

    def write(
        self, stream: IO[bytes], target: IO[bytes], pointers: Mapping[bytes, bytes], files: Mapping[bytes, bytes]
    ) -> None:
        """Copy the stream with other blobs in the place of pointers of the filter, and of .gitattributes."""
        mark = b""
        for line, is_data in commands(stream):
            if is_data:
                target.write(line)
            elif line.startswith(b"mark "):
                mark = line[5:-1]
                target.write(line)
            elif line == b"\n" and mark:  # the end of a commit
                target.writelines(self._untouched(mark, pointers))
                target.write(line)
                mark = b""
            else:
                target.write(self._exchanged(line, mark, pointers, files))

    def _eras(self, history: Iterable[Commit]) -> dict[AttributeFiles, Era]:
        eras: dict[AttributeFiles, Era] = {}
        for commit in history:
            before = self._files[commit.parent]
            after = self._files[commit.mark] = _after(before, commit.changes)
            era = eras.setdefault(after, Era(commit.sha, set(), set()))
            if after != before and commit.parent:
                self._turns[commit.mark] = Turn(commit.sha, before, after)
                era.paths.update(eras[before].paths)
            changes = [change for change in commit.changes if change.sha in self._known]
            era.changes.update(changes)
            era.paths.update(change.path for change in changes)
        return eras

    def _turned(self, turn: Turn) -> Iterator[tuple[Entry, bool]]:
        """What looks like a pointer and is given to the filter by this commit (True), or taken from it."""
        before, after = self._filtered[turn.before], self._filtered[turn.after]
        paths = sorted(path for path, filtered in before.items() if after.get(path, filtered) != filtered)
        for entry in self._repo.tree(turn.sha.decode(), paths):
            if entry.sha in self._known and entry.mode in _REGULAR:
                yield entry, after[entry.path]

    def _exchanged(
        self, line: bytes, mark: bytes, pointers: Mapping[bytes, bytes], files: Mapping[bytes, bytes]
    ) -> bytes:
        match = _MODIFY.fullmatch(line)
        if match is None or match[1] not in _REGULAR_MODES:
            return line
        path = _path(match[3])
        if _is_attributes(path):
            sha = files.get(match[2])
        else:
            sha = pointers.get(match[2]) if self._filtered[self._files[mark]].get(path) else None
        return line if sha is None else b"M %s %s %s\n" % (match[1], sha, match[3])

    def _untouched(self, mark: bytes, pointers: Mapping[bytes, bytes]) -> Iterator[bytes]:
        """Lines for files that become pointers with a commit, or cease to be: their text may be the parent's."""
        if mark in self._turns:
            for entry, filtered in self._turned(self._turns[mark]):
                sha = pointers[entry.sha] if filtered else entry.sha
                yield b"M %o %s %s\n" % (entry.mode, sha, c_quote(entry.path))


def commands(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The lines of a stream and, with True, the messages between them, which can look like lines."""
    for line in stream:
        yield line, False
        if line.startswith(b"data "):
            yield stream.read(int(line[5:])), True


def commits(stream: IO[bytes]) -> Iterator[Commit]:
    """The commits of a stream; parents come before their children."""
    commit = None
    for line, is_data in commands(stream):
        if line.startswith(b"commit ") and not is_data:
            commit = Commit(b"", b"", b"", [])
        elif commit is None or is_data:
            continue
        elif line == b"\n":
            yield commit
            commit = None
        else:
            commit = _read(commit, line)


def _read(commit: Commit, line: bytes) -> Commit:
    """What is known of a commit after one more line of it."""
    match = _MODIFY.fullmatch(line)
    if match is not None:
        commit.changes.append(Change(match[2] if match[1] in _REGULAR_MODES else b"", _path(match[3])))
    elif line.startswith(b"D "):
        commit.changes.append(Change(b"", _path(line[2:-1])))
    elif line.startswith(b"mark "):
        return commit._replace(mark=line[5:-1])
    elif line.startswith(b"original-oid "):
        return commit._replace(sha=line[13:-1])
    elif line.startswith(b"from "):
        return commit._replace(parent=line[5:-1])
    return commit


def _path(written: bytes) -> bytes:
    quoted = c_unquote(written)
    return written if quoted is None else quoted[0]


def _is_attributes(path: bytes) -> bool:
    return path.rpartition(b"/")[2] == b".gitattributes"


def _after(before: AttributeFiles, changes: Iterable[Change]) -> AttributeFiles:
    changed = {path: sha for sha, path in changes if _is_attributes(path)}
    if not changed:
        return before
    kept = {path: sha for path, sha in before if path not in changed}
    return frozenset({**kept, **{path: sha for path, sha in changed.items() if sha}}.items())
