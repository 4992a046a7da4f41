"""Data through another program: `datasets.transferagent` names an agent that speaks git-lfs's transfer protocol.

The program then takes the place of the dataset remote for push, fetch, pull and smudge. It is named in the user's own
git config alone: no key of a tracked file names a program. It is run at the top of the work tree, in as many processes
as git-lfs would run: `lfs.concurrenttransfers`, 8 unless the user has said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from gds_lfs.content.hashing import Oid
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.transfer.download import DownloadReport
    from gds_lfs.transfer.lfs_session import Agents
    from gds_lfs.transfer.upload import UploadReport

KEY = "datasets.transferagent"
CONCURRENCY = "lfs.concurrenttransfers"
_PROCESSES = 8


def fetch_through_agent(
    workspace: Workspace, program: str, wanted: Mapping[Oid, str], sizes: Mapping[Oid, int], git_remote: str | None
) -> DownloadReport:
    """Bring contents into the store. Raises RemoteError; absent ones are in the report."""
    from gds_lfs.transfer.lfs_client import Wanted, fetch

    items = {oid: Wanted(sizes.get(oid, 0), path) for oid, path in wanted.items()}
    with _agents(workspace, program, "download", git_remote) as agents:
        return fetch(workspace.store, agents, items, workspace.messages.progress)


def push_through_agent(
    workspace: Workspace, program: str, wanted: Mapping[Oid, str], git_remote: str | None
) -> UploadReport:
    """Send contents. Raises MissingObjectError, RemoteError."""
    from gds_lfs.transfer.lfs_client import Wanted, push

    sizes = {oid: manifest.size for oid, manifest in workspace.store.manifests(wanted).items()}
    items = {oid: Wanted(sizes.get(oid, 0), path) for oid, path in wanted.items()}
    with _agents(workspace, program, "upload", git_remote) as agents:
        return push(workspace.store, agents, items, workspace.scratch, workspace.messages.progress)


def _agents(
    workspace: Workspace, program: str, operation: str, git_remote: str | None
) -> AbstractContextManager[Agents]:
    from gds_lfs.transfer.lfs_session import start

    count = max(workspace.settings.get_number(CONCURRENCY) or _PROCESSES, 1)
    return start(program, operation, git_remote or workspace.git_remote(), workspace.base, count)
