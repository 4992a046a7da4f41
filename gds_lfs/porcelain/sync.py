"""Data between this repository and its remote: fetch, pull, push, and git's own push.

What is to be moved is worked out from git's objects; how it is moved is the transfer floor's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.errors import GitDatasetsError, MissingObjectError
from gds_lfs.git import attributes
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import checkout, foreign_agent, places, pointers
from gds_lfs.porcelain.fetching import fetch_objects
from gds_lfs.porcelain.messages import count, human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gds_lfs.content.hashing import Oid
    from gds_lfs.git.repo import Repo
    from gds_lfs.porcelain.pointers import PointerFile, Selection
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.transfer.upload import UploadReport

PUSH_FIELDS = 4
BEGIN_ANEW = "`git datasets push --all` sends all of history there, should it begin anew."


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
    workspace.check_git_remote(git_remote)

    def of_history() -> tuple[list[bytes], dict[Oid, str], dict[Oid, int]]:
        history = pointers.in_history(repo, ["--all"])
        wanted = {oid: path for oid, path in history.contents.items() if path in selection}
        return list(wanted.values()), {oid: quote(path) for oid, path in wanted.items()}, history.sizes

    def of_revisions() -> tuple[list[bytes], dict[Oid, str], dict[Oid, int]]:
        files = [file for rev in revs or _born(repo) for file in pointers.in_entries(repo, repo.tree(rev))]
        wanted = {f.pointer.oid: quote(f.path) for f in files if f.path in selection and f.pointer.size}
        return [file.path for file in files], wanted, {f.pointer.oid: f.pointer.size for f in files}

    find = of_history if everything else of_revisions
    paths, wanted, sizes = workspace.while_preparing(git_remote, find)
    _say_unmatched(workspace, selection, paths)
    _bring(workspace, wanted, git_remote, sizes)


def pull(workspace: Workspace, selection: Selection, git_remote: str | None = None) -> None:
    """Bring the data of the files in the work tree that hold pointers, and fill them in.

    Raises what kept some from coming (RemoteError, MissingObjectError), after all others were filled in.
    """
    from gds_lfs.porcelain.install import ensure_installed, has_data, install_hooks_quietly, is_installed

    workspace.check_git_remote(git_remote)
    install_hooks_quietly(workspace)
    workspace.prepare_remote(git_remote)
    files = checkout.unfilled(workspace, selection)
    if not is_installed(workspace) and (files or has_data(workspace)):
        ensure_installed(workspace)
    if selection.include and not files:
        _say_unmatched(workspace, selection, (f.path for f in _index_pointers(workspace)))
    _say_unmerged(workspace, selection)
    if not files:
        workspace.messages.note("nothing to fill in: no file here is a pointer")
        return
    filled, problem = _bring_and_fill(workspace, files, git_remote)
    if filled.damaged:  # it has been set aside by now, so that it counts as missing and is fetched anew
        again, second = _bring_and_fill(workspace, filled.damaged, git_remote)
        problem = problem or second
        filled = checkout.Filled(filled.files + again.files, filled.failed | again.failed, again.damaged)
    if filled.files:
        workspace.messages.note(f"filled in {count(filled.files, 'file')}")
    if problem is not None:
        raise problem
    checkout.raise_failed(workspace, filled)


def _bring_and_fill(
    workspace: Workspace, files: Sequence[PointerFile], git_remote: str | None
) -> tuple[checkout.Filled, GitDatasetsError | None]:
    problem: GitDatasetsError | None = None
    sizes = {f.pointer.oid: f.pointer.size for f in files}
    try:
        _bring(
            workspace, {f.pointer.oid: quote(f.path) for f in files if f.pointer.size}, git_remote, sizes, quiet=True
        )
    except GitDatasetsError as error:
        problem = error
    missing = workspace.store.missing({f.pointer.oid for f in files})
    return checkout.fill(workspace, [file for file in files if file.pointer.oid not in missing]), problem


def push(
    workspace: Workspace, git_remote: str | None = None, revs: Sequence[str] = (), *, everything: bool = False
) -> None:
    """Send all data that commits (HEAD by default) reach and the remote lacks, whatever was pushed before."""
    workspace.check_git_remote(git_remote)
    include = ["--all"] if everything else list(revs) or _born(workspace.repo)

    def find() -> dict[Oid, bytes]:
        return pointers.in_history(workspace.repo, include).contents if include else {}

    wanted = workspace.while_preparing(git_remote, find)
    _report_sent(workspace, _send(workspace, wanted, git_remote, anew=everything), always=True)


def pre_push(workspace: Workspace, git_remote: str, lines: Iterable[str]) -> None:
    """Git's pre-push: send the data before the refs move, so that pointers never outlive it (githooks(5)).

    Before that, a dataset whose code is new to every remote is parsed.
    Raises DatasetError, MissingObjectError, RemoteError and the like, which stops the push.
    """
    from gds_lfs.porcelain.parse_events import before_push

    repo, empty = workspace.repo, workspace.repo.blob_id(b"")
    updates = [fields for line in lines if len(fields := line.split()) == PUSH_FIELDS]
    tips = [local for _, local, _, _ in updates if local.strip("0")]
    if not tips:
        return
    known = [remote for _, _, _, remote in updates if remote.strip("0")]
    before_push(workspace, git_remote, tips, known)
    new_branch = len(known) < len(tips)
    exclude = known + ([f"--remotes={git_remote}"] if new_branch else [])
    place = places.place_of(workspace, git_remote)
    if place and not places.has_history(workspace, git_remote, place):
        exclude = []  # the data of what is there already may be at another place
    trees = [tip for tip in tips if _has_files(repo, tip)]

    def find() -> tuple[dict[Oid, bytes], list[bytes]]:
        history = pointers.in_history(repo, tips, exclude)
        wanted = history.contents
        # What tracking branches vouch for may be gone from the remote by now: what is pushed is asked for itself.
        for tip in trees if new_branch else ():
            wanted |= {f.pointer.oid: f.path for f in pointers.in_entries(repo, repo.tree(tip)) if f.pointer.size}
        return wanted, [path for sha, path in history.paths.items() if sha not in history.pointers and sha != empty]

    wanted, others = workspace.while_preparing(git_remote, find)
    if trees:
        _warn_of_raw_content(workspace, others, trees[-1])
    if wanted:
        _report_sent(workspace, _send(workspace, wanted, git_remote), always=False)
        places.remember(workspace, git_remote, place)


def _born(repo: Repo) -> list[str]:
    """HEAD, unless nothing was committed yet."""
    return ["HEAD"] if repo.head() else []


def _has_files(repo: Repo, rev: str) -> bool:
    """Whether this is a commit or a tree, or a tag of one; a tag may also name a blob."""
    return repo.run("rev-parse", "--quiet", "--verify", rev + "^{tree}", check=False) != b""


def _bring(
    workspace: Workspace,
    wanted: Mapping[Oid, str],
    git_remote: str | None,
    sizes: Mapping[Oid, int],
    *,
    quiet: bool = False,
) -> None:
    absent = workspace.store.missing(wanted)
    messages = workspace.messages
    if not absent:
        if not quiet:
            messages.note("nothing to fetch" + (f": {count(len(wanted), 'file')} here already" if wanted else ""))
        return
    report = fetch_objects(workspace, {oid: path for oid, path in wanted.items() if oid in absent}, git_remote, sizes)
    messages.note(f"fetched {count(len(report.fetched), 'file')}, {human_bytes(report.bytes_received)} received")
    if report.missing:
        messages.warn_paths(
            f"the data of {count(len(report.missing), 'file')} is not on the dataset remote:",
            sorted(report.missing.values()),
            "Whoever committed them can send it again with `git datasets push`.",
        )
    if report.damaged:
        messages.warn_paths(
            f"the data of {count(len(report.damaged), 'file')} is damaged on the dataset remote:",
            sorted(report.damaged.values()),
            f"Delete {', '.join(report.damaged_packs)} there; whoever has the data can then send it again with "
            f"`git datasets push --all`.",
        )
    left = len(report.missing) + len(report.damaged)
    if left:
        raise MissingObjectError(f"the data of {count(left, 'file')} could not be had")


def _send(
    workspace: Workspace, wanted: Mapping[Oid, bytes], git_remote: str | None, *, anew: bool = False
) -> UploadReport:
    """Send what the remote lacks. With `anew` that may be everything, though it was pushed to before."""
    from gds_lfs.transfer.upload import UploadReport, upload

    if not wanted:
        return UploadReport()
    paths = {oid: quote(path) for oid, path in wanted.items()}
    program = workspace.settings.get(foreign_agent.KEY)
    if program:
        return foreign_agent.push_through_agent(workspace, program, paths, git_remote)
    remote = workspace.open_push_remote(git_remote)
    place, known = places.place_of(workspace, git_remote), places.seen(workspace, git_remote)
    begin_anew = BEGIN_ANEW if places.may_be_unmounted(place, known) and not anew else None
    try:
        return upload(
            workspace.store, remote, workspace.cache, paths, workspace.messages.progress, begin_anew=begin_anew
        )
    except MissingObjectError as error:
        if known in (None, place):
            raise
        raise MissingObjectError(f"{error}\n{_how_to_move(known)}", error.oid) from error
    finally:
        workspace.tell_requests()


def _how_to_move(known: str) -> str:
    from gds_lfs.porcelain.s3_settings import link_command, split_address

    back = link_command(*split_address(known), None, local=True)
    return (
        f"This clone's data came from {known}. What is still there comes with `{back}`, `git datasets fetch --all`; "
        "then name the new place again (`git config --unset datasets.remote`, if .datasetsconfig names it), and push."
    )


def _report_sent(workspace: Workspace, report: UploadReport, *, always: bool) -> None:
    if report.files:
        workspace.messages.note(f"sent {count(report.files, 'file')}, {human_bytes(report.bytes_sent)}")
    elif always:
        workspace.messages.note("nothing to send: the remote has it all")


def _warn_of_raw_content(workspace: Workspace, paths: Iterable[bytes], tip: str) -> None:
    """Content that went into git itself under a tracked pattern: told, since the push will make it permanent."""
    raw = [path for path, ours in attributes.check(workspace.repo, set(paths), tip).items() if ours]
    if raw:
        from gds_lfs.porcelain.install import is_installed

        first = "" if is_installed(workspace) else "`git datasets install`, then "
        workspace.messages.warn_paths(
            "these files should have been pointers, but their content is in git itself:",
            map(quote, raw),
            f"{first}`git add --renormalize .` and a commit turn them into pointers from then on.",
        )


def _index_pointers(workspace: Workspace) -> list[PointerFile]:
    return list(pointers.in_entries(workspace.repo, workspace.repo.staged()))


def _say_unmerged(workspace: Workspace, selection: Selection) -> None:
    unmerged = dict.fromkeys(entry.path for entry in workspace.repo.staged() if entry.stage and entry.path in selection)
    if unmerged:
        workspace.messages.note(f"left alone, since a merge has yet to settle them: {' '.join(map(quote, unmerged))}")


def _say_unmatched(workspace: Workspace, selection: Selection, paths: Iterable[bytes]) -> None:
    for pattern in selection.unmatched(list(paths)):
        workspace.messages.warn(f"--include {pattern}: no file with data matches it")
