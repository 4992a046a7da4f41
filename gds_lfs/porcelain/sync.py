"""Data between this repository and its remote: fetch, pull, push, and git's own push.

What is to be moved is worked out from git's objects; how it is moved is the transfer floor's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.errors import MissingObjectError
from gds_lfs.git import attributes
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import checkout, pointers
from gds_lfs.porcelain.messages import count, human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gds_lfs.content.hashing import Oid
    from gds_lfs.porcelain.pointers import PointerFile, Selection
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.transfer.download import DownloadReport
    from gds_lfs.transfer.upload import UploadReport

ZERO = "0" * 40
PUSH_FIELDS = 4


def fetch_objects(workspace: Workspace, wanted: Mapping[Oid, str], git_remote: str | None = None) -> DownloadReport:
    """Bring contents into the store; the paths are for messages. Raises RemoteError; absent ones are in the report."""
    return workspace.download(workspace.open_remote(git_remote), wanted)


def fetch(
    workspace: Workspace,
    selection: Selection,
    git_remote: str | None = None,
    revs: Sequence[str] = (),
    *,
    everything: bool = False,
) -> None:
    """Bring the data of commits (HEAD by default, with `everything` all of history) into the local store.

    Raises MissingObjectError, after the others arrived, when some of it is not on the remote.
    """
    repo = workspace.repo
    workspace.prepare_remote(git_remote)
    if everything:
        wanted = {oid: path for oid, path in pointers.in_history(repo, ["--all"]).items() if path in selection}
        paths: Iterable[bytes] = wanted.values()
    else:
        files = [file for rev in revs or ["HEAD"] for file in pointers.in_entries(repo, repo.tree(rev))]
        paths = [file.path for file in files]
        wanted = {f.pointer.oid: f.path for f in files if f.path in selection and f.pointer.size}
    _say_unmatched(workspace, selection, paths)
    _bring(workspace, {oid: quote(path) for oid, path in wanted.items()}, git_remote)


def pull(workspace: Workspace, selection: Selection, git_remote: str | None = None) -> None:
    """Bring the data of the files in the work tree that hold pointers, and fill them in."""
    from gds_lfs.porcelain.install import install_hooks_quietly

    install_hooks_quietly(workspace)
    workspace.prepare_remote(git_remote)
    files = checkout.unfilled(workspace, selection)
    if selection.include and not files:
        _say_unmatched(workspace, selection, (f.path for f in _index_pointers(workspace)))
    problem: MissingObjectError | None = None
    try:
        _bring(workspace, {f.pointer.oid: quote(f.path) for f in files if f.pointer.size}, git_remote)
    except MissingObjectError as error:
        problem = error
    missing = workspace.store.missing({f.pointer.oid for f in files})
    filled = checkout.fill(workspace, [file for file in files if file.pointer.oid not in missing])
    if files:
        workspace.messages.note(f"filled in {count(filled.files, 'file')}")
    if problem is not None:
        raise problem
    checkout.raise_failed(workspace, filled)


def push(
    workspace: Workspace, git_remote: str | None = None, revs: Sequence[str] = (), *, everything: bool = False
) -> None:
    """Send all data that commits (HEAD by default) reach and the remote lacks, whatever was pushed before."""
    workspace.prepare_remote(git_remote)
    wanted = pointers.in_history(workspace.repo, ["--all"] if everything else list(revs) or ["HEAD"])
    _report_sent(workspace, _send(workspace, wanted, git_remote), always=True)


def pre_push(workspace: Workspace, git_remote: str, lines: Iterable[str]) -> None:
    """Git's pre-push: send the data before the refs move, so that pointers never outlive it (githooks(5)).

    Raises MissingObjectError, RemoteError and the like, which stops the push.
    """
    repo = workspace.repo
    updates = [fields for line in lines if len(fields := line.split()) == PUSH_FIELDS]
    tips = [local for _, local, _, _ in updates if local.strip("0")]
    if not tips:
        return
    workspace.prepare_remote(git_remote)
    known = [remote for _, _, _, remote in updates if remote.strip("0")]
    new_branch = len(known) < len(tips)
    exclude = known + ([f"--remotes={git_remote}"] if new_branch else [])
    wanted = pointers.in_history(repo, tips, exclude)
    if new_branch:
        # What tracking branches vouch for may be gone from the remote by now: what is pushed is asked for itself.
        for tip in tips:
            wanted |= {f.pointer.oid: f.path for f in pointers.in_entries(repo, repo.tree(tip)) if f.pointer.size}
    _warn_of_raw_content(workspace, tips, exclude)
    if wanted:
        _report_sent(workspace, _send(workspace, wanted, git_remote), always=False)


def _bring(workspace: Workspace, wanted: Mapping[Oid, str], git_remote: str | None) -> None:
    absent = workspace.store.missing(wanted)
    messages = workspace.messages
    if not absent:
        messages.note(f"nothing to fetch: {count(len(wanted), 'file')} here already")
        return
    report = fetch_objects(workspace, {oid: path for oid, path in wanted.items() if oid in absent}, git_remote)
    messages.note(f"fetched {count(len(report.fetched), 'file')}, {human_bytes(report.bytes_received)} received")
    for absent_paths, what in ((report.missing, "not on the dataset remote"), (report.damaged, "damaged there")):
        if absent_paths:
            messages.warn_paths(
                f"the data of {count(len(absent_paths), 'file')} is {what}:",
                sorted(absent_paths.values()),
                "Whoever committed them can send it again with `git datasets push`.",
            )
    left = len(report.missing) + len(report.damaged)
    if left:
        raise MissingObjectError(f"the data of {count(left, 'file')} could not be had")


def _send(workspace: Workspace, wanted: Mapping[Oid, bytes], git_remote: str | None) -> UploadReport:
    from gds_lfs.transfer.upload import UploadReport, upload

    if not wanted:
        return UploadReport()
    remote = workspace.open_push_remote(git_remote)
    paths = {oid: quote(path) for oid, path in wanted.items()}
    try:
        return upload(workspace.store, remote, workspace.cache, paths, workspace.messages.progress)
    finally:
        workspace.tell_requests()


def _report_sent(workspace: Workspace, report: UploadReport, *, always: bool) -> None:
    if report.files:
        workspace.messages.note(f"sent {count(report.files, 'file')}, {human_bytes(report.bytes_sent)}")
    elif always:
        workspace.messages.note("nothing to send: the remote has it all")


def _warn_of_raw_content(workspace: Workspace, tips: Sequence[str], exclude: Sequence[str]) -> None:
    """Content that went into git itself under a tracked pattern: told, since the push will make it permanent."""
    repo = workspace.repo
    changed = dict(repo.reachable_blobs(tips, exclude))
    known = pointers.pointers_of(repo, changed)
    candidates = {path for sha, path in changed.items() if sha not in known}
    tracked = [path for path, ours in attributes.check(repo, candidates, tips[-1]).items() if ours]
    empty = repo.run("hash-object", "-t", "blob", "--stdin", input=b"").strip()
    raw = [path for path in tracked if path != changed.get(empty)]
    if raw:
        workspace.messages.warn_paths(
            "these files should have been pointers, but their content is in git itself:",
            map(quote, raw),
            "`git add --renormalize .` and a commit turn them into pointers from then on.",
        )


def _index_pointers(workspace: Workspace) -> list[PointerFile]:
    return list(pointers.in_entries(workspace.repo, workspace.repo.staged()))


def _say_unmatched(workspace: Workspace, selection: Selection, paths: Iterable[bytes]) -> None:
    for pattern in selection.unmatched(list(paths)):
        workspace.messages.warn(f"--include {pattern}: no file with data matches it")
