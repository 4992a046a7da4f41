"""What is there and in what state: ls-files, status, fsck, env. Nothing here changes anything."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gds_lfs.content import pointer as pointer_text
from gds_lfs.content.hashing import oid_of_file
from gds_lfs.errors import CorruptObjectError, MissingObjectError
from gds_lfs.git import attributes, hooks
from gds_lfs.git.paths import quote
from gds_lfs.git.remotes import without_credentials
from gds_lfs.porcelain import install, pointers, tracking
from gds_lfs.porcelain.checkout import holds_pointer
from gds_lfs.porcelain.messages import count
from gds_lfs.porcelain.reconciling import disagreeing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.messages import Messages
    from gds_lfs.porcelain.pointers import PointerFile
    from gds_lfs.porcelain.workspace import Workspace


@dataclass
class Findings:
    """What is wrong with the tracked files, by kind."""

    raw: list[bytes] = field(default_factory=list)
    malformed: list[bytes] = field(default_factory=list)
    misplaced: list[bytes] = field(default_factory=list)
    corrupt: list[bytes] = field(default_factory=list)
    absent: list[bytes] = field(default_factory=list)

    @property
    def any_wrong(self) -> bool:
        """Data that was never fetched is no fault."""
        return bool(self.raw or self.malformed or self.misplaced or self.corrupt)


def ls_files(workspace: Workspace, rev: str | None, *, raw: bool, long: bool) -> None:
    """List the files whose content is ours: `*` where it is in the store, `-` where only its pointer is here."""
    repo, messages = workspace.repo, workspace.messages
    files = _pointer_files(workspace, rev)
    missing = workspace.store.missing({file.pointer.oid for file in files})
    if raw:
        messages.result_bytes(b"".join(repo.from_here(file.path) + b"\0" for file in files))
        return
    for file in files:
        oid = file.pointer.oid.hex()
        mark = "-" if file.pointer.oid in missing else "*"
        messages.result(f"{oid if long else oid[:10]} {mark} {quote(repo.from_here(file.path))}")


def status(workspace: Workspace) -> bool:
    """Print what a user should know about the data here; False when something needs mending."""
    messages, repo = workspace.messages, workspace.repo
    repo.work_tree  # noqa: B018 - says so where there is none
    entries = list(repo.staged())
    files = list(pointers.in_entries(repo, entries))
    findings = Findings()
    _look_at_blobs(workspace, entries, files, None, findings)
    absent = [file for file in files if holds_pointer(repo.absolute(file.path), file)]
    url = workspace.remote_url()
    messages.result(f"data goes to: {without_credentials(url or '') or 'nowhere yet (git datasets link URL)'}")
    size = sum(file.pointer.size for file in files)
    messages.result(f"tracked: {count(len(files), 'file')}, {size:,} bytes")
    for registration in tracking.registrations(workspace):
        messages.result(f"dataset: {quote(registration.index)} -> {quote(registration.database)}")
    _list(workspace, "only pointers here (git datasets pull):", (file.path for file in absent))
    disagreements = disagreeing(workspace)
    _list(workspace, "code and data disagree (git datasets reconcile):", (r.index for r in disagreements))
    _print_findings(workspace, findings)
    report = hooks.status(repo)
    if report.missing and install.has_data(workspace):  # git-lfs's agent needs none
        messages.result(f"hooks missing in {report.folder} (git datasets install): {', '.join(report.missing)}")
    installed = install.is_installed(workspace) or not install.has_data(workspace)
    if not installed:
        messages.result("git does not know the filter here, so contents go into git itself: git datasets install")
    return installed and not (findings.any_wrong or disagreements)


def fsck(workspace: Workspace, rev: str | None, *, repair: bool = False) -> bool:
    """Check the pointers of a commit (the index by default) and the local data behind them; False when any is bad.

    Data that is not local is told, and is no fault. Nothing is moved or deleted; with `repair` corrupt data is set
    aside, and taken anew from the work tree or the remote where they have it. Raises RemoteError.
    """
    repo, messages = workspace.repo, workspace.messages
    source = rev or ("HEAD" if repo.top is None else None)
    entries = list(repo.tree(source) if source else repo.staged())
    files = list(pointers.in_entries(repo, entries))
    findings = Findings()
    _look_at_blobs(workspace, entries, files, source or ":", findings)
    missing = workspace.store.missing({file.pointer.oid for file in files})
    sizes: dict[bytes, int | None] = {}
    messages.progress.start("Checking", sum(file.pointer.size for file in files), len(files))
    for file in files:
        oid = file.pointer.oid
        if oid in missing:
            findings.absent.append(file.path)
            messages.progress.advance(file.pointer.size, 1)
            continue
        if oid not in sizes:
            sizes[oid] = _size_if_intact(workspace, oid) or (_repaired(workspace, file) if repair else None)
        if sizes[oid] is None:
            findings.corrupt.append(file.path)
        elif sizes[oid] != file.pointer.size:
            findings.malformed.append(file.path)
        messages.progress.advance(file.pointer.size, 1)
    messages.progress.done()
    _print_findings(workspace, findings)
    _list(workspace, "not local (git datasets fetch brings them):", findings.absent)
    checked, absent = len(files) - len(findings.absent), count(len(findings.absent), "file")
    verdict = "something is wrong" if findings.any_wrong else "all good" if checked or not files else ""
    left = f"could not check {absent}, whose data is not here" if findings.absent else ""
    messages.result(f"checked {count(checked, 'file')}: {'; '.join(filter(None, (verdict, left)))}")
    return not findings.any_wrong


def env(messages: Messages, workspace: Workspace | None) -> None:
    """Print versions, paths and settings: what a bug report needs."""
    from gds_lfs import __version__
    from gds_lfs.git.config import cache_dir

    say = messages.result
    say(f"git-datasets {__version__}")
    say(f"python {sys.version.split()[0]} {sys.executable}")
    say(install.git_version())
    say(f"program: {' '.join(install.program())}")
    say(f"cache: {cache_dir()}")
    for key, value in install.drivers().items():
        found = install.config("--get", key).strip()
        say(f"{key}: {found or 'not set'}{'' if found in ('', value) else ' (not this program)'}")
    if workspace is None:
        return
    from gds_lfs.porcelain.child import interpreter

    say(f"repository: {workspace.repo.git_dir}")
    say(f"store: {workspace.repo.common_dir / 'datasets'}")
    say(f"remote: {without_credentials(workspace.remote_url() or 'none')}")
    say(f"python for index.py: {interpreter(workspace)}")
    report = hooks.status(workspace.repo)
    say(f"hooks: {report.folder} ({', '.join(report.current) or 'none of ours'})")


def _pointer_files(workspace: Workspace, rev: str | None) -> list[PointerFile]:
    repo = workspace.repo
    source = rev or ("HEAD" if repo.top is None else None)
    return list(pointers.in_entries(repo, repo.tree(source) if source else repo.staged()))


def _look_at_blobs(
    workspace: Workspace, entries: Iterable[Entry], files: Iterable[PointerFile], source: str | None, findings: Findings
) -> None:
    """Blobs under a tracked pattern that are no pointers, and pointers that no pattern covers."""
    repo = workspace.repo
    known = {file.path for file in files}
    plain = {e.path: e for e in entries if e.mode not in (pointers.LINK, pointers.SUBMODULE) and e.stage == 0}
    tracked = attributes.check(repo, plain, source)
    suspects = {path: entry.sha for path, entry in plain.items() if tracked.get(path) and path not in known}
    texts = dict(repo.small_blobs(set(suspects.values())))
    large = repo.present(set(suspects.values()) - texts.keys())  # a partial clone need not have them all
    for path, sha in suspects.items():
        text = texts.get(sha)
        if text is not None and text.startswith(pointer_text.PREFIX):
            findings.malformed.append(path)
        elif text or sha in large:
            findings.raw.append(path)
    findings.misplaced = [path for path in known if not tracked.get(path)]


def _print_findings(workspace: Workspace, findings: Findings) -> None:
    _list(workspace, "should be pointers, but their content is in git (git add --renormalize .):", findings.raw)
    _list(workspace, "look like pointers, but are none (add the real file again):", findings.malformed)
    advice = "git datasets track them; or git datasets pull, then git add them as plain files"
    _list(workspace, f"pointers that no pattern covers ({advice}):", findings.misplaced)
    _list(workspace, "corrupt in the local store (git datasets fsck --repair takes them anew):", findings.corrupt)


def _list(workspace: Workspace, headline: str, paths: Iterable[bytes]) -> None:
    workspace.messages.result_paths(headline, (quote(workspace.repo.from_here(path)) for path in paths))


def _repaired(workspace: Workspace, file: PointerFile) -> int | None:
    """Set a corrupt content aside and get it from the work tree, else from the remote; its size, None if in vain."""
    oid = file.pointer.oid
    with suppress(CorruptObjectError, MissingObjectError):
        for _ in workspace.store.pieces(oid):  # reading is what sets aside
            pass
    if workspace.repo.top is not None:
        on_disk = workspace.repo.absolute(file.path)
        if os.path.isfile(on_disk) and oid_of_file(on_disk) == oid:
            with workspace.store.writer(framed=True) as writer:
                return sum(added.pointer.size for added in writer.add_files([on_disk]))
    fetched = workspace.download(workspace.open_remote(), {oid: quote(file.path)}).fetched
    return file.pointer.size if oid in fetched else None


def _size_if_intact(workspace: Workspace, oid: bytes) -> int | None:
    try:
        return workspace.store.verify(oid)
    except CorruptObjectError:
        return None
