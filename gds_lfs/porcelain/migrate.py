"""`git datasets migrate`: the pointers of git-lfs made ours, or ours git-lfs's, for the next commit.

Both name a content by the same hash, so pointers and attributes change and nothing else: no content is hashed twice,
sent again or moved, and files in the work tree stay as they are. Before anything is changed every content must be safe:
in the store that the new pointers are looked up in, or, on the way from git-lfs to us, on the dataset remote.
"""

from __future__ import annotations

import os
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gds_lfs.content import lfs_pointer, pointer
from gds_lfs.content.hashing import oid_of_file
from gds_lfs.errors import ConfigError, CorruptObjectError, GitDatasetsError, MissingObjectError
from gds_lfs.git import attributes
from gds_lfs.git.index import UnsupportedIndexError, unchanged
from gds_lfs.git.paths import quote
from gds_lfs.git.remotes import setting_key
from gds_lfs.porcelain import checkout
from gds_lfs.porcelain.lfs_engine import object_path, storage
from gds_lfs.porcelain.messages import count
from gds_lfs.porcelain.pointers import LINK, SUBMODULE
from gds_lfs.porcelain.staging import Blob, stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gds_lfs.content.hashing import Oid
    from gds_lfs.content.pointer import Pointer
    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.rewriting import Rewriting
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.remote.base import Remote

ATTRIBUTES = b".gitattributes"
BRING_THEM = "bring them first: git lfs fetch --all"


@dataclass(frozen=True)
class Form:
    """One kind of pointers: the filter that makes them, and their text."""

    filter: str
    recognise: Callable[[bytes], Pointer | None]
    encode: Callable[[Pointer], bytes]


LFS = Form("lfs", lfs_pointer.recognise, lfs_pointer.encode)
OURS = Form("datasets", pointer.recognise, lambda known: known.encode())


@dataclass(frozen=True)
class Conversion:
    """From one form to the other, with what makes the contents safe first."""

    old: Form
    new: Form
    secure: Callable[[Workspace, Mapping[Oid, bytes]], None]

    def text(self, known: Pointer) -> bytes:
        """The new pointer; an empty file is an empty blob in both."""
        return self.new.encode(known) if known.size else b""

    def attributes(self, text: bytes) -> bytes:
        """The text of a .gitattributes with the filter exchanged."""
        return attributes.exchange(text, self.old.filter, self.new.filter)


def migrate(workspace: Workspace, conversion: Conversion, *, everything: bool = False) -> None:
    """Convert what is staged, for the next commit; with `everything` all branches and tags.

    Raises MissingObjectError and the like before anything is changed.
    """
    from gds_lfs.porcelain.rewriting import Rewriting

    if not workspace.repo.top:
        raise ConfigError("a bare repository has no next commit: migrate in a clone that has a work tree")
    with closing(Rewriting(workspace, conversion)) if everything else nullcontext() as rewriting:
        _convert(workspace, conversion, rewriting)
    if conversion.new is OURS:
        from gds_lfs.porcelain.install import install_hooks

        install_hooks(workspace)
        _say_what_clones_do_not_know(workspace)
    _say_what_is_not_installed(workspace, conversion.new)


def _convert(workspace: Workspace, conversion: Conversion, rewriting: Rewriting | None) -> None:
    found = _pointers(workspace, conversion)
    wanted = {known.oid: entry.path for entry, known in found if known.size}
    conversion.secure(workspace, wanted | (rewriting.contents() if rewriting else {}))
    texts = _convert_attributes(workspace, conversion)
    _convert_pointers(workspace, conversion, found)
    files = f"{count(len(found), 'file')} and {count(texts, 'file')} of attributes"
    if rewriting:
        commits = rewriting.run()
        workspace.messages.note(f"converted {count(commits, 'commit')}; the old branches are under refs/original/")
    elif found or texts:
        workspace.messages.note(f"converted {files}; next: git commit")
    else:
        workspace.messages.note(f"nothing here belongs to filter={conversion.old.filter}")


def bring_in(workspace: Workspace, wanted: Mapping[Oid, bytes]) -> None:
    """Put git-lfs's objects into our store, but for those that it or the dataset remote has.

    Raises MissingObjectError, CorruptObjectError, and what keeps the dataset remote from being asked.
    """
    store = workspace.store
    store.recover()
    absent = store.missing(wanted)
    folder = storage(workspace)
    here = [oid for oid in wanted if oid in absent and object_path(folder, oid).is_file()]
    elsewhere = {oid: wanted[oid] for oid in absent.difference(here)}
    if elsewhere:
        _check_remote(workspace, elsewhere)
    with store.writer(framed=True) as writer:
        paths = [object_path(folder, oid) for oid in here]
        for oid, added in zip(here, writer.add_files(paths), strict=True):
            if added.pointer.oid != oid:
                path = quote(wanted[oid])
                raise CorruptObjectError(f"{path}: git-lfs's object sha256:{oid.hex()} is damaged: git lfs fsck", oid)


def hand_out(workspace: Workspace, wanted: Mapping[Oid, bytes]) -> None:
    """Put contents where git-lfs looks for its objects; what is not here comes from the dataset remote.

    Raises MissingObjectError, CorruptObjectError, RemoteError.
    """
    folder = storage(workspace)
    lacking = [oid for oid in wanted if not object_path(folder, oid).is_file()]
    absent = workspace.store.missing(lacking)
    if absent:
        from gds_lfs.porcelain.fetching import fetch_objects

        fetch_objects(workspace, {oid: quote(wanted[oid]) for oid in absent})
        absent = workspace.store.missing(absent)
    _refuse(workspace, {oid: wanted[oid] for oid in absent}, "whoever has them can send them: git datasets push")
    for oid in lacking:
        target = object_path(folder, oid)
        target.parent.mkdir(parents=True, exist_ok=True)
        checkout.replace(os.fsencode(target), workspace.store.pieces(oid))


IMPORT = Conversion(LFS, OURS, bring_in)
EXPORT = Conversion(OURS, LFS, hand_out)


def _pointers(workspace: Workspace, conversion: Conversion) -> list[tuple[Entry, Pointer]]:
    """The staged files whose filter is the old one and that hold its pointer."""
    repo = workspace.repo
    entries = [entry for entry in repo.staged() if entry.mode not in (LINK, SUBMODULE) and entry.stage == 0]
    texts = dict(repo.small_blobs({entry.sha for entry in entries}, pointer.MAX_SIZE))
    found = []
    for entry in entries:
        known = conversion.old.recognise(texts.get(entry.sha, b""))
        if known is not None:
            found.append((entry, known))
    paths = [entry.path for entry, _ in found]
    filtered = attributes.check(repo, paths, ":", name=conversion.old.filter)
    return [(entry, known) for entry, known in found if filtered[entry.path]]


def _convert_attributes(workspace: Workspace, conversion: Conversion) -> int:
    """All .gitattributes, staged and in the work tree; how many have changed."""
    repo = workspace.repo
    entries = [entry for entry in repo.staged() if entry.path.rpartition(b"/")[2] == ATTRIBUTES and entry.stage == 0]
    texts = dict(repo.blobs({entry.sha for entry in entries}))
    blobs = []
    for entry in entries:
        new = conversion.attributes(texts.get(entry.sha, b""))
        disk = repo.absolute(entry.path)
        with suppress(FileNotFoundError):
            with open(disk, "rb") as file:
                old = file.read()
            if conversion.attributes(old) != old:
                checkout.replace(disk, iter([conversion.attributes(old)]))
        if new != texts.get(entry.sha, b""):
            blobs.append(Blob(entry.path, new, None, entry.mode))
    stage(repo, blobs)
    return len(blobs)


def _convert_pointers(workspace: Workspace, conversion: Conversion, found: list[tuple[Entry, Pointer]]) -> None:
    """Stage the new pointers. A file that is in the work tree stays, and is known to be unchanged if it was."""
    repo = workspace.repo
    known_same = _unchanged(workspace, [entry.path for entry, _ in found])
    blobs = []
    for entry, known in found:
        path = repo.absolute(entry.path)
        stat = None
        with suppress(FileNotFoundError, NotADirectoryError):
            stat = os.lstat(path)
            if _holds(path, stat, conversion.old, known):
                stat = checkout.replace(path, iter([conversion.text(known)]), executable=bool(stat.st_mode & 0o100))
            elif entry.path not in known_same and not _is_content(path, stat, known):
                stat = None  # changed, and not yet added: git will say so
        blobs.append(Blob(entry.path, conversion.text(known), stat, entry.mode))
    stage(repo, blobs)


def _unchanged(workspace: Workspace, paths: list[bytes]) -> set[bytes]:
    try:
        return unchanged(workspace.repo, paths)
    except UnsupportedIndexError:
        return set()


def _holds(path: bytes, stat: os.stat_result, form: Form, known: Pointer) -> bool:
    """Whether a file in the work tree is the pointer itself."""
    if not os.path.isfile(path) or stat.st_size > pointer.MAX_SIZE:
        return False
    with open(path, "rb") as file:
        return known.size > 0 and form.recognise(file.read()) == known


def _is_content(path: bytes, stat: os.stat_result, known: Pointer) -> bool:
    return stat.st_size == known.size and os.path.isfile(path) and oid_of_file(path) == known.oid


def _check_remote(workspace: Workspace, wanted: Mapping[Oid, bytes]) -> None:
    """Raises MissingObjectError for contents that the dataset remote does not have, or what keeps it from being asked.

    The files that depend on it are named before.
    """
    from gds_lfs.remote.base import AbsentRemoteError

    advice = BRING_THEM
    lost = wanted
    try:
        if workspace.remote_url() is not None:
            lost = _not_on_remote(workspace, wanted)
    except AbsentRemoteError as error:  # nothing was ever sent there, or it is a drive that is not mounted
        advice = f"{error}\n{BRING_THEM}"
    except GitDatasetsError:
        _name(workspace, wanted, f"the dataset remote may have them, but could not be asked; or {BRING_THEM}")
        raise
    _refuse(workspace, lost, advice)


def _not_on_remote(workspace: Workspace, wanted: Mapping[Oid, bytes]) -> Mapping[Oid, bytes]:
    from gds_lfs.store.pack import CHUNKS, MANIFESTS
    from gds_lfs.transfer.index import RemoteIndex

    remote: Remote = workspace.open_remote()
    index = RemoteIndex(remote, workspace.cache)
    index.refresh()
    return {oid: wanted[oid] for oid in index.missing(MANIFESTS, index.missing(CHUNKS, wanted.keys()))}


def _refuse(workspace: Workspace, lost: Mapping[Oid, bytes], advice: str) -> None:
    if not lost:
        return
    _name(workspace, lost, advice)
    raise MissingObjectError(f"the content of {count(len(lost), 'file')} could not be had; nothing was changed")


def _name(workspace: Workspace, lost: Mapping[Oid, bytes], advice: str) -> None:
    workspace.messages.warn_paths("the content of these files is not here:", sorted(map(quote, lost.values())), advice)


def _say_what_is_not_installed(workspace: Workspace, form: Form) -> None:
    if workspace.settings.get(f"filter.{form.filter}.process") is None:
        command = "git datasets install" if form is OURS else "git lfs install"
        workspace.messages.warn(f"filter.{form.filter} is not set up for your user yet: {command}")


def _say_what_clones_do_not_know(workspace: Workspace) -> None:
    """Where data goes may stand in this clone's config alone: git-lfs's agent is set up that way."""
    from gds_lfs.porcelain.s3_settings import link_command, split_address

    if setting_key(workspace.settings, workspace.git_remote(), "remote") and workspace.shared_config().remote is None:
        url, endpoint = split_address(workspace.remote_address() or "")
        command = link_command(url, endpoint, None)
        workspace.messages.note(f"that data goes to {url} is known to this clone alone; to tell all: `{command}`")
