"""Data through another program: `datasets.transferagent` names an agent that speaks git-lfs's transfer protocol.

The program then takes the place of the dataset remote for push, fetch, pull and smudge. It is named in the user's own
git config alone: no key of a tracked file names a program. It is run at the top of the work tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gds_lfs.content.hashing import Oid
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.transfer.download import DownloadReport
    from gds_lfs.transfer.upload import UploadReport

KEY = "datasets.transferagent"


def fetch_through_agent(
    workspace: Workspace, program: str, wanted: Mapping[Oid, str], sizes: Mapping[Oid, int], git_remote: str | None
) -> DownloadReport:
    """Bring contents into the store. Raises RemoteError; absent ones are in the report."""
    from gds_lfs.transfer.lfs_client import Wanted, fetch, start

    items = {oid: Wanted(sizes.get(oid, 0), path) for oid, path in wanted.items()}
    name = git_remote or workspace.git_remote()
    with start(program, "download", name, workspace.base) as session:
        return fetch(workspace.store, session, items, workspace.messages.progress)


def push_through_agent(
    workspace: Workspace, program: str, wanted: Mapping[Oid, str], git_remote: str | None
) -> UploadReport:
    """Send contents. Raises MissingObjectError, RemoteError."""
    from gds_lfs.transfer.lfs_client import Wanted, push, start

    sizes = {oid: manifest.size for oid, manifest in workspace.store.manifests(wanted).items()}
    items = {oid: Wanted(sizes.get(oid, 0), path) for oid, path in wanted.items()}
    name = git_remote or workspace.git_remote()
    with start(program, "upload", name, workspace.base) as session:
        return push(workspace.store, session, items, workspace.scratch, workspace.messages.progress)
