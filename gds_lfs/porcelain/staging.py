"""Pointers written into git's index in one go: blobs as one pack, entries with their stat data.

What `git add` does for one file after another, with a filter's round trip for each, happens here for all of them at
once. Where the index is of a kind only git itself can write (split, sparse), git writes it.
"""

from __future__ import annotations

import stat as statmodule
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gds_lfs.git.index import IndexUpdate, UnsupportedIndexError, update_with_git, write_blobs, writing_blobs

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from gds_lfs.git.repo import Entry, Repo

FILE = 0o100644
EXECUTABLE = 0o100755


@dataclass(frozen=True)
class Blob:
    """A path that is to hold `text` (mostly a pointer). `stat` is the work-tree file's, taken before it was read."""

    path: bytes
    text: bytes
    stat: os.stat_result | None = None
    mode: int = FILE


def mode_of(stat: os.stat_result, *, trust_mode: bool, old_mode: int | None) -> int:
    """The index mode of a regular file; with core.fileMode off the old one stands."""
    if trust_mode:
        return EXECUTABLE if stat.st_mode & statmodule.S_IXUSR else FILE
    return old_mode or FILE


def stage(
    repo: Repo,
    blobs: Sequence[Blob],
    removed: Sequence[bytes] = (),
    index: Path | None = None,
    *,
    since: float | None = None,
) -> list[tuple[Blob, bytes]]:
    """Write the blobs, their entries and the removals. Gives each blob with its id; raises LockedError.

    `since` is when reading the files began (seconds since 1970): what changed later is looked at again by git.
    """
    if not blobs and not removed:
        return []
    texts = [blob.text for blob in blobs]
    try:
        with IndexUpdate(repo, index, since=since) as update, writing_blobs(repo, texts) as shas:
            for path in removed:
                update.remove(path)
            for blob, sha in zip(blobs, shas, strict=True):
                update.set(blob.path, blob.mode, sha, blob.stat)
    except UnsupportedIndexError:
        shas = write_blobs(repo, texts)
        entries = [(0, b"", path) for path in removed]
        entries += [(blob.mode, sha, blob.path) for blob, sha in zip(blobs, shas, strict=True)]
        update_with_git(repo, entries, index)
    return list(zip(blobs, shas, strict=True))


def restage(repo: Repo, entries: Sequence[tuple[Entry, os.stat_result | None]], *, since: float | None = None) -> None:
    """Give entries of the index, if they still are what they were, other stat data; None makes git look at the file."""
    if not entries:
        return
    try:
        with IndexUpdate(repo, since=since) as update:
            for entry, stat in entries:
                if update.entry(entry.path) == entry:
                    update.set(entry.path, entry.mode, entry.sha, stat)
    except UnsupportedIndexError:
        update_with_git(repo, [(entry.mode, entry.sha, entry.path) for entry, _ in entries])
