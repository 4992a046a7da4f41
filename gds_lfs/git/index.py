"""The index, changed in one go: thousands of entries with their stat data, without git reading a file again.

git trusts an entry whose stat data equal the file's, unless the file's time is not older than the index's
("racy": an edit in the same clock second leaves no trace). Rewriting the index makes it newer, so an entry
that was racy, or whose content was read in the second in which the file was written, gets size 0 here. That
is git's own mark for "look at the content again".
"""

from __future__ import annotations

import hashlib
import os
import time
from bisect import bisect_left
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import GitDatasetsError, LockedError
from gds_lfs.git.blob_writer import write_blobs, writing_blobs
from gds_lfs.git.cache_tree import invalidate
from gds_lfs.git.index_file import UNKNOWN_STAT, IndexFile, UnsupportedIndexError, decode, encode, stat_data
from gds_lfs.git.repo import Entry, index_variable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from dulwich.index import SerializedIndexEntry
    from typing_extensions import Self

    from gds_lfs.git.index_file import StatData
    from gds_lfs.git.repo import Repo

__all__ = ["IndexUpdate", "UnsupportedIndexError", "unchanged", "update_with_git", "write_blobs", "writing_blobs"]

_U32 = 0xFFFFFFFF
_GITLINK = 0o160000
# the size that makes git compare the content
_SUSPECT = 0
_UNIX = os.name != "nt"  # git for Windows has no device and inode numbers
# file times come from a clock that ticks every 1 to 10 ms
_TICK_NS = 20_000_000
_SECOND_NS = 1_000_000_000
_COARSE_NS = 10_000_000  # some file systems count in hundredths of a second, or in seconds
# with more files than this to filter again, wait for the second to end
_WORTH_WAITING = 1000
# seconds to wait for the lock: the `git status` of an editor holds it for a moment, and often
_PATIENCE = 3


class IndexUpdate:
    """Holds `<index>.lock` as git does. A normal exit replaces the index, an exception leaves it as it was.

    Enter it before reading the files whose stat data are given to `set`, or say with `since` (seconds since
    1970) when reading began: that decides which of them may have been edited unseen.
    """

    def __init__(self, repo: Repo, index_path: Path | None = None, *, since: float | None = None) -> None:
        self._repo = repo
        self._path = Path(os.path.realpath(index_path or repo.index_path))
        self._lock = self._path.with_name(self._path.name + ".lock")
        self._since = None if since is None else int(since * _SECOND_NS)
        self._index = IndexFile(repo.object_format)
        self._on_disk: list[bytes] = []  # paths that the file had, sorted
        self._fresh: dict[bytes, int] = {}  # paths with new stat data, and the file's time
        self._folders: set[bytes] = set()  # folders of paths that were set
        self._changed: set[bytes] = set()  # paths whose content, mode or presence changed
        self._dirty = False

    def __enter__(self) -> Self:
        """Lock and read. Raises LockedError when git or another command holds the lock, UnsupportedIndexError."""
        file = self._take_lock()
        try:
            with open(file, "wb"):
                self._since = self._since or os.fstat(file).st_mtime_ns
            self._read()
        except BaseException:
            self._lock.unlink()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._dirty:
                self._write()
            else:
                self._lock.unlink()
        except BaseException:
            self._lock.unlink(missing_ok=True)
            raise

    def set(self, path: bytes, mode: int, sha: bytes, stat: os.stat_result | None = None) -> None:
        """Stage a blob (hex id) at `path`, resolving a conflict there and giving way to no file or folder.

        `stat` must have been taken from the file before its content was read; without it git looks itself.
        """
        self._make_way(path)
        if stat is None:
            self._fresh.pop(path, None)
        else:
            self._fresh[path] = stat.st_mtime_ns
        before = self._index.entries.get(path)
        self._index.put(path, mode, sha, UNKNOWN_STAT if stat is None else _stat_data(stat))
        self._dirty = True
        if before is None or (before.mode, before.sha) != (mode, sha):
            self._changed.add(path)

    def remove(self, path: bytes) -> None:
        """Take a path out, in all its stages; nothing happens when it is not there."""
        removed = self._index.entries.pop(path, None) is not None
        if self._index.conflicts.pop(path, None) is not None or removed:
            self._changed.add(path)
            self._fresh.pop(path, None)
            self._dirty = True

    def entry(self, path: bytes) -> Entry | None:
        """What is staged at `path`; None for nothing, or a conflict."""
        entry = self._index.entries.get(path)
        return None if entry is None else _entry(entry)

    def _take_lock(self) -> int:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError as error:
                if time.monotonic() > deadline:
                    raise LockedError(
                        f"{self._lock} exists: another git command is running, or left it; then delete it"
                    ) from error
            except OSError as error:
                raise GitDatasetsError(f"{self._lock} cannot be created: {error.strerror}") from error
            time.sleep(0.02)

    def _make_way(self, path: bytes) -> None:
        """Remove what cannot stand beside a file at `path`: conflict stages, files above it, files below it."""
        self._index.conflicts.pop(path, None)
        folder = path.rpartition(b"/")[0]
        while folder and folder not in self._folders:
            self._folders.add(folder)
            self.remove(folder)
            folder = folder.rpartition(b"/")[0]
        below = path + b"/"
        start = bisect_left(self._on_disk, below)
        while start < len(self._on_disk) and self._on_disk[start].startswith(below):
            self.remove(self._on_disk[start])
            start += 1
        if path in self._folders:
            for other in [other for other in self._changed if other.startswith(below)]:
                self.remove(other)
            self._folders = {folder for folder in self._folders if folder != path and not folder.startswith(below)}

    def _read(self) -> None:
        try:
            with open(self._path, "rb") as file:
                stat = os.fstat(file.fileno())
                data = file.read()
        except FileNotFoundError:
            return
        if not data:
            return
        if hasattr(os, "fchmod"):
            self._lock.chmod(stat.st_mode & 0o777)  # what core.sharedRepository made of the index stays
        self._index = decode(data, self._repo.object_format)
        self._on_disk = sorted({*self._index.entries, *self._index.conflicts})
        time_of_index = stat.st_mtime_ns // _SECOND_NS
        for entry in self._index.entries.values():
            if stat_data(entry)[1][0] >= time_of_index and entry.mode != _GITLINK:
                entry.size = _SUSPECT

    def _write(self) -> None:
        for path in self._racy():
            self._index.entries[path].size = _SUSPECT
        tree = self._index.extensions.pop(b"TREE", None)
        if tree is not None:
            with suppress(ValueError):  # without it git computes all trees
                self._index.extensions[b"TREE"] = invalidate(tree, self._changed, len(self._repo.empty_tree) // 2)
        try:
            with open(self._lock, "wb") as file:
                file.write(encode(self._index))
            os.replace(self._lock, self._path)
        except OSError as error:
            raise GitDatasetsError(f"{self._path} cannot be written: {error.strerror}") from error

    def _racy(self) -> list[bytes]:
        """Fresh entries whose file may have been edited after it was read, unseen by git.

        git may compare whole seconds only. A file of an earlier second than that in which reading began cannot be
        edited and keep its time. A later one is safe once its second is over, and its stat data, compared to the
        nanosecond here, are still the same: any edit from then on changes the second.
        """
        assert self._since is not None
        began = (self._since - _TICK_NS) // _SECOND_NS
        suspects = {path: wrote for path, wrote in self._fresh.items() if wrote // _SECOND_NS >= began}
        over = _second_that_is_over()
        if sum(wrote // _SECOND_NS > over for wrote in suspects.values()) >= _WORTH_WAITING:
            time.sleep((_SECOND_NS - (time.time_ns() - _TICK_NS) % _SECOND_NS) / _SECOND_NS)
            over = _second_that_is_over()
        return [path for path, wrote in suspects.items() if wrote // _SECOND_NS > over or not self._is_still(path)]

    def _is_still(self, path: bytes) -> bool:
        """Whether the file has the very stat data of its entry, on a file system that keeps fine times."""
        try:
            stat = os.lstat(self._repo.absolute(path))
        except OSError:
            return False
        return stat_data(self._index.entries[path]) == _stat_data(stat) and stat.st_mtime_ns % _COARSE_NS != 0


def unchanged(repo: Repo, paths: Iterable[bytes]) -> set[bytes]:
    """Those of `paths` whose stat data in the index vouch for their content, as git decides it.

    Raises UnsupportedIndexError for an index that only git can read.
    """
    empty = hashlib.new(repo.object_format, b"blob 0\0").hexdigest().encode()
    try:
        with open(repo.index_path, "rb") as file:
            written = os.fstat(file.fileno()).st_mtime_ns
            data = file.read()
    except FileNotFoundError:
        return set()
    entries = decode(data, repo.object_format).entries if data else {}
    found = set()
    for path in paths:
        entry = entries.get(path)
        if entry is None:
            continue
        try:
            stat = os.lstat(repo.absolute(path))
        except OSError:
            continue
        if not stat.st_size and entry.sha != empty:
            continue  # a size of 0 is also the mark of an entry under suspicion
        if stat.st_mtime_ns // _SECOND_NS < written // _SECOND_NS and stat_data(entry) == _stat_data(stat):
            found.add(path)
    return found


def update_with_git(repo: Repo, entries: Iterable[tuple[int, bytes, bytes]], index_path: Path | None = None) -> None:
    """Stage (mode, hex id, path) with git itself, for an index that IndexUpdate cannot write; mode 0 removes.

    git gets no stat data that way, so it looks at these files at the next `git status`. Raises GitError.
    """
    zeros = b"0" * len(repo.empty_tree)
    lines = b"".join(b"%o %s\t%s\0" % (mode, sha if mode else zeros, path) for mode, sha, path in entries)
    repo.run("update-index", "-z", "--index-info", input=lines, env=index_variable(index_path))


def _second_that_is_over() -> int:
    """The latest clock second that no file time can fall into any more."""
    return (time.time_ns() - _TICK_NS) // _SECOND_NS - 1


def _stat_data(stat: os.stat_result) -> StatData:
    """What an entry keeps of a file's stat data, cut to 32 bits as git does."""
    return (
        (stat.st_ctime_ns // _SECOND_NS & _U32, stat.st_ctime_ns % _SECOND_NS),
        (stat.st_mtime_ns // _SECOND_NS & _U32, stat.st_mtime_ns % _SECOND_NS),
        stat.st_dev & _U32 if _UNIX else 0,
        stat.st_ino & _U32 if _UNIX else 0,
        stat.st_uid & _U32,
        stat.st_gid & _U32,
        stat.st_size & _U32,
    )


def _entry(entry: SerializedIndexEntry) -> Entry:
    return Entry(entry.mode, entry.sha, 0, entry.name)
