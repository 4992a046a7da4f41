"""`git datasets add`: what `git add` does, without piping every file's content through git.

Files that the attributes give to us are read in parallel and stored, and their pointers enter the index together.
All else, and whatever is not a plain file, is handed to `git add` itself.
"""

from __future__ import annotations

import os
import stat as statmodule
import time
from typing import TYPE_CHECKING

from gds_lfs.content import pointer as pointers
from gds_lfs.errors import GitDatasetsError, GitError
from gds_lfs.git import attributes
from gds_lfs.git.index import UnsupportedIndexError, unchanged
from gds_lfs.porcelain import sidecars
from gds_lfs.porcelain.filters import conflict_message, is_malformed, warn_of_malformed
from gds_lfs.porcelain.install import install_hooks_quietly
from gds_lfs.porcelain.messages import count, human_bytes
from gds_lfs.porcelain.pointers import LINK
from gds_lfs.porcelain.staging import Blob, mode_of, stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gds_lfs.git.repo import Repo
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.store.writer import StoreWriter


def add(workspace: Workspace, pathspecs: Sequence[str]) -> None:
    """Stage what changed under the pathspecs (git's own syntax). Raises GitError when one matches nothing."""
    repo = workspace.repo
    began = time.time()
    ours, theirs, gone = _changed(workspace, pathspecs)
    blobs: list[Blob] = []
    size = 0
    if ours:
        # A clone that held no data yet has no hooks: without them the next push would leave this data behind.
        install_hooks_quietly(workspace)
        workspace.messages.progress.start("Adding", sum(s.st_size for s in ours.values()), len(ours))
        with workspace.store.writer(framed=True) as writer:
            for blob, length in stored(workspace, writer, ours):
                blobs.append(blob)
                size += length
        workspace.messages.progress.done()
    stage(repo, blobs, gone, since=began)
    if theirs:
        listing = b"\0".join(theirs) + b"\0"
        repo.run("--literal-pathspecs", "add", "--pathspec-from-file=-", "--pathspec-file-nul", input=listing)
    if blobs or gone:
        removed = f", {len(gone):,} removed" if gone else ""
        workspace.messages.note(f"added {count(len(blobs), 'file')}, {human_bytes(size)}{removed}")


def stored(workspace: Workspace, writer: StoreWriter, files: dict[bytes, os.stat_result]) -> Iterator[tuple[Blob, int]]:
    """Store work-tree files and give the index blob of each with its size; a file that holds a pointer keeps it."""
    repo = workspace.repo
    trust_mode = workspace.settings.get_bool("core.filemode", default=True)
    modes = {} if trust_mode else {entry.path: entry.mode for entry in repo.staged(list(files))}
    contents: list[bytes] = []
    malformed: list[bytes] = []
    for path, stat in files.items():
        text = _pointer_text(repo.absolute(path), stat)
        if text is None:
            contents.append(path)
            continue
        if pointers.has_conflict(text):
            raise GitDatasetsError(conflict_message(path))
        if pointers.recognise(text) is None:
            malformed.append(path)
        yield Blob(path, text, stat, mode_of(stat, trust_mode=trust_mode, old_mode=modes.get(path))), 0
    for path, added in zip(contents, writer.add_files([repo.absolute(path) for path in contents]), strict=True):
        text = added.pointer.encode() if added.pointer.size else b""
        mode = mode_of(added.stat, trust_mode=trust_mode, old_mode=modes.get(path))
        yield Blob(path, text, added.stat, mode), added.pointer.size
        workspace.messages.progress.advance(added.pointer.size, 1)
    if malformed:
        warn_of_malformed(workspace, malformed)


def _changed(
    workspace: Workspace, pathspecs: Sequence[str]
) -> tuple[dict[bytes, os.stat_result], list[bytes], list[bytes]]:
    """(our files that differ from the index, other paths, paths of ours or others that are gone)."""
    repo = workspace.repo
    paths = _listed(repo, pathspecs)
    known = _unchanged(workspace, paths)
    touched: dict[bytes, os.stat_result] = {}
    gone: list[bytes] = []
    for path in paths:
        if path in known:
            continue
        try:
            touched[path] = os.lstat(repo.absolute(path))
        except (FileNotFoundError, NotADirectoryError):
            gone.append(path)
    plain = [path for path, stat in touched.items() if statmodule.S_ISREG(stat.st_mode)]
    filtered = attributes.check(repo, plain)
    ours = {path: touched[path] for path in plain if filtered.get(path)}
    if not workspace.settings.get_bool("core.symlinks", default=True):
        for entry in repo.staged(list(ours)):
            if entry.mode == LINK:  # on disk, a file that holds where the link leads
                ours.pop(entry.path, None)
    folded = [path for path in ours if sidecars.fold(workspace, path)]
    ours |= {path: os.lstat(repo.absolute(path)) for path in folded}
    return ours, [path for path in touched if path not in ours], gone


def _listed(repo: Repo, pathspecs: Sequence[str]) -> list[bytes]:
    """The files under the pathspecs that `git add` would look at. Raises GitError when one matches nothing."""
    here = repo.absolute(repo.prefix)
    listing: list[str | bytes] = ["-C", here, "ls-files", "-z", "-v", "--full-name", "-c", "-o", "--exclude-standard"]
    named = [spec for spec in pathspecs if not os.path.isdir(os.path.join(here, os.fsencode(spec)))]
    if named:  # a folder may be empty
        try:
            repo.run(*listing, "--error-unmatch", "--", *named)
        except GitError as error:
            said, unmatched, _ = str(error).partition(" did not match any file")
            ignored = ", or only ignored ones (git add -f takes those)" if unmatched else ""
            raise GitError(f"{said}{unmatched}{ignored}") from error
    lines = repo.run(*listing, "--", *pathspecs).split(b"\0")[:-1]
    # Small letters and S: assumed unchanged, or outside a sparse checkout. They need not be on disk.
    return list(dict.fromkeys(line[2:] for line in lines if line[:1] in b"HM?"))


def _unchanged(workspace: Workspace, paths: list[bytes]) -> set[bytes]:
    """Paths whose stat data in the index vouches for them, as git itself decides it."""
    try:
        return unchanged(workspace.repo, paths)
    except UnsupportedIndexError:
        return set()


def _pointer_text(path: bytes, stat: os.stat_result) -> bytes | None:
    """The text of a file that holds a pointer (or what was one: malformed, in conflict) instead of data."""
    if not 0 < stat.st_size <= 8 * pointers.MAX_SIZE:
        return None
    with open(path, "rb") as file:
        head = file.read(len(pointers.PREFIX))
        if head != pointers.PREFIX and not head.startswith(b"<<<<<<<"):
            return None
        text = head + file.read()
    known = pointers.recognise(text)
    if known is not None:
        return known.encode()
    return text if pointers.has_conflict(text) or is_malformed(text) else None
