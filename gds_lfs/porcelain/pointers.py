"""Which pointers an index, a tree or a stretch of history holds, and which of them a pattern selects."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content.pointer import MAX_SIZE, Pointer, recognise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gds_lfs.content.hashing import Oid
    from gds_lfs.git.repo import Entry, Repo

LINK, SUBMODULE = 0o120000, 0o160000


class PointerFile(NamedTuple):
    """A path that holds a pointer, with the entry it stands in."""

    path: bytes
    pointer: Pointer
    entry: Entry


def in_entries(repo: Repo, entries: Iterable[Entry]) -> Iterator[PointerFile]:
    """The pointers among index or tree entries, in their order. Links and submodules are never pointers."""
    files = [entry for entry in entries if entry.mode not in (LINK, SUBMODULE) and entry.stage == 0]
    found = pointers_of(repo, dict.fromkeys(entry.sha for entry in files))  # in an order that suits packs
    for entry in files:
        pointer = found.get(entry.sha)
        if pointer is not None:
            yield PointerFile(entry.path, pointer, entry)


@dataclass(frozen=True)
class History:
    """The blobs of a stretch of history, each with one of its paths, and what those that are pointers point to."""

    paths: dict[bytes, bytes]
    pointers: dict[bytes, Pointer]

    @property
    def contents(self) -> dict[Oid, bytes]:
        """What the pointers point to, each with one path."""
        return {pointer.oid: self.paths[sha] for sha, pointer in self.pointers.items() if pointer.size}

    @property
    def sizes(self) -> dict[Oid, int]:
        """The size of each content."""
        return {pointer.oid: pointer.size for pointer in self.pointers.values()}


def in_history(repo: Repo, include: Sequence[str], exclude: Sequence[str] = ()) -> History:
    """What commits reachable from `include` and not from `exclude` hold."""
    paths: dict[bytes, bytes] = {}
    for sha, path in repo.reachable_blobs(include, exclude):
        paths.setdefault(sha, path)
    return History(paths, pointers_of(repo, paths))


def pointers_of(repo: Repo, shas: Iterable[bytes]) -> dict[bytes, Pointer]:
    """The blobs that are pointers, each with what it points to."""
    found = {}
    for sha, text in repo.small_blobs(shas, MAX_SIZE):
        pointer = recognise(text)
        if pointer is not None:
            found[sha] = pointer
    return found


class Selection:
    """`--include` and `--exclude`: patterns as in .gitignore, relative to the top; `./x` and `../x` to the folder
    the user stands in.

    Without an include everything is included; an exclude wins over an include.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = (), prefix: bytes = b"") -> None:
        self.include = [anchor(pattern, prefix) for pattern in include]
        self.exclude = [anchor(pattern, prefix) for pattern in exclude]
        self._included = matcher(self.include) if self.include else None
        self._excluded = matcher(self.exclude) if self.exclude else None

    def __contains__(self, path: bytes) -> bool:
        text = os.fsdecode(path)
        if self._excluded is not None and self._excluded(text):
            return False
        return self._included is None or self._included(text)

    def unmatched(self, paths: Iterable[bytes]) -> list[str]:
        """The includes that match none of the paths."""
        texts = [os.fsdecode(path) for path in paths]
        return [pattern for pattern in self.include if not any(map(matcher([pattern]), texts))]


def anchor(pattern: str, prefix: bytes) -> str:
    """A pattern that begins with `./` or `../`, anchored at the top of the work tree."""
    if not pattern.startswith(("./", "../")):
        return pattern
    joined = posixpath.normpath(posixpath.join("/", os.fsdecode(prefix), pattern))
    return joined + "/" if pattern.endswith("/") and joined != "/" else joined


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether .gitignore with these lines would ignore a file (gitignore(5)), as pathspec implements it."""
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(patterns)
    return spec.match_file
