"""What happens when git calls a hook: pre-commit and pre-merge-commit, post-commit, post-checkout, post-merge.

(pre-push is in `sync.py`.) A hook that runs after the fact never fails what git has done.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gds_lfs.content.pointer import MAX_SIZE, PREFIX, has_conflict
from gds_lfs.errors import ConfigError, DatasetError
from gds_lfs.git import attributes
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import child, journal, reconciling, recovery, sidecars, tracking
from gds_lfs.porcelain.add import stored
from gds_lfs.porcelain.install import is_installed
from gds_lfs.porcelain.pointers import LINK, SUBMODULE
from gds_lfs.porcelain.staging import stage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gds_lfs.git.repo import Change
    from gds_lfs.porcelain.tracking import Registration
    from gds_lfs.porcelain.workspace import Workspace

LARGEST_CONFLICT = 8192
MOST_NAMED = 10


def pre_commit(workspace: Workspace) -> None:
    """Make what the staged `index.py` files declare part of the commit. Raises to abort it, with nothing changed."""
    from gds_lfs.porcelain.parse_events import CommitParse

    repo = workspace.repo
    index = repo.index_path
    with journal.writing(workspace):
        unfinished = recovery.recover(workspace, index)
        changes = list(repo.changed_staged())
        _refuse_bad_content(workspace, changes)
        _fold_databases(workspace, changes, index)
        changed = {change.path for change in changes}
        found = staged_registrations(workspace)
        parse = CommitParse(workspace, index, changed) if found else None
        again = unfinished is not None
        done = reconciling.reconcile(workspace, found, index, changed, unfinished, force=again, parse=parse)
        if done and changes:
            _refuse_an_empty_commit(workspace, index, changes)


def reconcile(workspace: Workspace, *, dry_run: bool, again: bool) -> None:
    """What pre-commit would do, without a commit; `dry_run` prints it. Raises ConfigError without a dataset.

    `again` runs all ingests, also those whose code has not changed.
    """
    found = staged_registrations(workspace)
    if not found:
        raise ConfigError("no dataset is tracked here: `git datasets new` writes one, `track index.py` tracks yours")
    for registration in found:
        if workspace.repo.run("--literal-pathspecs", "diff", "--name-only", "--", registration.index):
            workspace.messages.warn(
                f"{quote(registration.index)} has changes that are not staged; the staged text counts"
            )
    if dry_run:
        for registration in found:
            with child.scratch_folder(workspace) as scratch:
                plan = reconciling.Reconciliation(workspace, registration, None, scratch).plan(again=again)
            for line in plan or ["nothing to do"]:
                workspace.messages.result(f"{quote(registration.index)}: {line}")
        return
    with journal.writing(workspace):
        done = reconciling.reconcile(workspace, found, None, set(), force=True, again=again)
        journal.drop(workspace)  # staged in the real index: git itself can take it back now
    for registration in found:
        staged = any(registration.index == each.index for each in done)
        said = "staged; next: git commit" if staged else "nothing to do"
        workspace.messages.note(f"{quote(registration.index)}: {said}")


def post_commit(workspace: Workspace) -> None:
    """Tell the real index what a partial commit's hook added, and forget the journal."""
    if not journal.exists(workspace):
        return
    with journal.writing(workspace):
        record = journal.load(workspace)
        if record is not None and record.staged and recovery.committed(workspace, record):
            recovery.repair_index(workspace, record)
            journal.drop(workspace)


def after_checkout(workspace: Workspace) -> None:
    """post-checkout and post-merge: settle what is unfinished, and say where code and data disagree now."""
    if workspace.repo.top is None:
        return
    recovery.settle(workspace)
    for registration in reconciling.disagreeing(workspace):
        name = quote(registration.index)
        workspace.messages.warn(
            f"{name} and {quote(registration.database)} disagree here: `git datasets reconcile` and a commit mend it"
        )


def staged_registrations(workspace: Workspace) -> list[Registration]:
    """The datasets of the index, and those that `track` has just added to the work tree's .datasetsconfig."""
    found = {r.index: r for r in tracking.registrations(workspace)}
    found |= {r.index: r for r in tracking.registrations(workspace, ":")}
    return list(found.values())


def _refuse_bad_content(workspace: Workspace, changes: Sequence[Change]) -> None:
    """Conflict markers around pointers are nobody's data. Nor is raw data, which no filter made a pointer, for git."""
    shas = {change.new_sha: change.path for change in changes if change.new_mode}
    no_data = {workspace.repo.blob_id(b"")}
    for sha, text in workspace.repo.small_blobs(shas, LARGEST_CONFLICT):
        if has_conflict(text):
            raise DatasetError(
                f"{quote(shas[sha])} holds conflict markers around pointers, not data.\n"
                f"Choose a side with `git checkout --ours` or `--theirs`, then add it"
            )
        if len(text) <= MAX_SIZE and text.startswith(PREFIX):
            no_data.add(sha)
    plain = [c for c in changes if c.new_mode not in (0, LINK, SUBMODULE) and c.new_sha != c.old_sha]
    _refuse_raw_data(workspace, [change.path for change in plain if change.new_sha not in no_data])


def _refuse_raw_data(workspace: Workspace, paths: Sequence[bytes]) -> None:
    """Raise ConfigError when files with these contents should be pointers, and git has no filter to make them so."""
    if not paths or is_installed(workspace):
        return
    # as `git add` asks: it is its work that is looked at
    names = [quote(path) for path, ours in attributes.check(workspace.repo, paths).items() if ours]
    if names:
        more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        raise ConfigError(
            f"git does not know the filter here, so these would go into git itself: "
            f"{', '.join(names[:MOST_NAMED])}{more}.\n"
            f"`git datasets install`, then `git add --renormalize .`, and commit again"
        )


def _refuse_an_empty_commit(workspace: Workspace, index: Path, changes: Sequence[Change]) -> None:
    """Raise DatasetError where all that was staged, `changes`, is taken back: git does not look at it again."""
    repo = workspace.repo
    if (repo.git_dir / "MERGE_HEAD").exists() or any(True for _ in repo.changed_staged()):
        return
    record = journal.load(workspace)
    if record is not None:
        recovery.undo(workspace, record, index)
    raise DatasetError(
        f"nothing is left to commit: rows and their files come from index.py alone.\n{_way_back(changes)}"
    )


def _way_back(changes: Sequence[Change]) -> str:
    """How to take such changes back. A file that was added may be the only copy: it is not to be deleted."""
    ways = []
    if any(not change.old_mode for change in changes):
        ways.append("`git restore --staged FILE` unstages what you added, and leaves the file where it is")
    if any(change.old_mode for change in changes):
        ways.append("`git restore --staged --worktree FILE` takes back what you changed or deleted")
    return "\n".join(ways)


def _fold_databases(workspace: Workspace, changes: Sequence[Change], index: Path) -> None:
    """Databases that are part of the commit, with the rows that were still in their `-wal` files."""
    repo = workspace.repo
    paths = [c.path for c in changes if c.new_mode and os.path.exists(repo.absolute(c.path) + b"-wal")]
    ours = [path for path, tracked in attributes.check(repo, paths).items() if tracked]
    folded = {path: os.lstat(repo.absolute(path)) for path in ours if sidecars.fold(workspace, path)}
    if not folded:
        return
    files = {path: os.lstat(repo.absolute(path)) for path in folded}
    began = time.time()
    with workspace.store.writer(framed=True) as writer:
        blobs = [blob for blob, _ in stored(workspace, writer, files)]
    stage(repo, blobs, (), index, since=began)
