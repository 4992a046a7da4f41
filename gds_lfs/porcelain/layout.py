"""The files of a commit in a folder of their own, as git would give them to somebody else.

git writes them (`checkout-index`), so line endings and others' filters are as in a clone; only what is large is linked
from the work tree where that has it unchanged. Our pointers are replaced by their data from the store. Where that is
not on this machine, the file is left out: code that needs it fails here and not on a pointer's text. A dataset's own
data is not laid out, however large it is: code reaches it through its rows.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gds_lfs.content.pointer import MAX_SIZE, Pointer, held_by
from gds_lfs.dataset.parse.result import File
from gds_lfs.errors import GitError
from gds_lfs.git.repo import index_variable
from gds_lfs.porcelain.checkout import replace
from gds_lfs.porcelain.pointers import SUBMODULE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.workspace import Workspace

_LARGE = 1 << 20
"""Files of this size are linked from the work tree where that has them."""

_NO_FILTER = ("-c", "filter.datasets.process=", "-c", "filter.datasets.smudge=", "-c", "filter.datasets.required=false")


@dataclass
class Layout:
    """What was laid out in `folder`, which stands for the top of the repository."""

    folder: Path
    files: list[File] = field(default_factory=list)
    entries: frozenset[bytes] = frozenset()
    """All paths of the commit."""
    left_out: frozenset[bytes] = frozenset()
    """Those of them that include and exclude keep from going."""
    data: tuple[bytes, ...] = ()
    """The folders and databases with the data of datasets."""
    unfetched: set[bytes] = field(default_factory=set)
    """Files whose data is not on this machine."""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def staged_as(workspace: Workspace, rev: str, scratch: Path) -> Path:
    """An index file that holds a commit. Raises GitError when there is no such commit."""
    index = scratch / "index"
    workspace.repo.run("read-tree", f"{rev}^{{tree}}", env=index_variable(index))
    return index


def lay_out(
    workspace: Workspace, entries: Iterable[Entry], index: Path | None, folder: Path, data: Iterable[bytes]
) -> Layout:
    """Write the files of these entries of an index (None: the repository's own) into a new folder, but no `data`."""
    layout = Layout(folder, data=tuple(data))
    within = tuple(path + b"/" for path in layout.data)
    going = {
        entry.path: entry.sha
        for entry in entries
        if entry.stage == 0
        and entry.mode != SUBMODULE
        and entry.path not in layout.data
        and not entry.path.startswith(within)
    }
    folder.mkdir()
    linked = _link_large(workspace, going, os.fsencode(folder))
    _write(workspace, [path for path in going if path not in linked], index, folder)
    pointers: dict[bytes, Pointer] = {}
    for path in going:
        found = _measure(os.path.join(os.fsencode(folder), path))
        if isinstance(found, Pointer):
            pointers[path] = found
            found = found.size
        if found is not None:
            layout.files.append(File(os.fsdecode(path), found))
    if pointers:
        _fill(workspace, layout, pointers)
    return layout


def _link_large(workspace: Workspace, going: dict[bytes, bytes], folder: bytes) -> set[bytes]:
    """Link large files whose content is in the work tree as the index has it, whoever's filter made it; which."""
    repo = workspace.repo
    large = {path for path in going if repo.top is not None and _size(repo.absolute(path)) >= _LARGE}
    if not large:
        return large
    changed = set(repo.run("diff-files", "--name-only", "-z").split(b"\0"))
    same = {entry.path for entry in repo.staged(sorted(large)) if entry.sha == going.get(entry.path)}
    return {path for path in same - changed if _link(repo.absolute(path), os.path.join(folder, path))}


def _size(file: bytes) -> int:
    try:
        found = os.lstat(file)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _write(workspace: Workspace, paths: list[bytes], index: Path | None, folder: Path) -> None:
    listed = b"".join(path + b"\0" for path in paths)
    command = [*_NO_FILTER, "checkout-index", "-f", "-z", "--stdin", f"--prefix={folder}/"]
    try:
        # What a sparse checkout leaves out here, others may have.
        workspace.repo.run(*command, "--ignore-skip-worktree-bits", input=listed, env=index_variable(index))
    except GitError:  # git before 2.34 knows no such bits here, nor the option
        workspace.repo.run(*command, input=listed, env=index_variable(index))


def _measure(file: bytes) -> Pointer | int | None:
    """A file's size, or the pointer that it holds; None when git did not write it."""
    try:
        found = os.lstat(file)
    except OSError:
        return None
    if stat.S_ISREG(found.st_mode) and 0 < found.st_size <= MAX_SIZE:
        return held_by(file) or found.st_size
    return found.st_size


def _fill(workspace: Workspace, layout: Layout, pointers: dict[bytes, Pointer]) -> None:
    """Put data in the place of pointers, and nothing where there is none."""
    for path, pointer in pointers.items():
        target = os.path.join(os.fsencode(layout.folder), path)
        if workspace.store.has(pointer.oid):
            replace(target, workspace.store.pieces(pointer.oid))
        else:
            os.unlink(target)
            layout.unfetched.add(path)
    for file in layout.files:
        file.fetched = os.fsencode(file.path) not in layout.unfetched


def _link(source: bytes, target: bytes) -> bool:
    """Make the target the same file; whether that could be done."""
    with suppress(OSError):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.link(source, target)
        return True
    return False
