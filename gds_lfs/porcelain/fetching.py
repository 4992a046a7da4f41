"""Contents brought into the store, from wherever the data of this repository is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import RemoteError
from gds_lfs.git.remotes import OWN_REMOTE
from gds_lfs.porcelain import foreign_agent, places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gds_lfs.content.hashing import Oid
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.remote.base import Remote
    from gds_lfs.transfer.download import DownloadReport


def fetch_objects(
    workspace: Workspace,
    wanted: Mapping[Oid, str],
    git_remote: str | None = None,
    sizes: Mapping[Oid, int] | None = None,
    source: str | None = None,
) -> DownloadReport:
    """Bring contents into the store; the paths are for messages. Raises RemoteError; absent ones are in the report.

    `sizes` are told to the user's own transfer agent, if there is one; `source` has the `.datasetsconfig` that counts.
    """
    from gds_lfs.transfer.download import DownloadReport

    program = workspace.settings.get(foreign_agent.KEY)
    near: dict[Oid, int] = {}
    if program:
        report = foreign_agent.fetch_through_agent(workspace, program, wanted, sizes or {}, git_remote)
    else:
        report = DownloadReport()
        near |= _pushed_here(workspace, wanted)
        if not near.keys() >= wanted.keys():
            remote = workspace.open_remote(git_remote, source)
            near |= _from_next_door(workspace, remote, wanted)
            report = workspace.download(remote, {oid: path for oid, path in wanted.items() if oid not in near})
    if report.fetched:
        places.remember(workspace, git_remote, places.place_of(workspace, git_remote, source), first=True)
    report.fetched |= near.keys()
    report.bytes_received += sum(near.values())
    return report


def _pushed_here(workspace: Workspace, wanted: Mapping[Oid, str]) -> Mapping[Oid, int]:
    """What others have pushed to this very repository, which then keeps it itself; the sizes."""
    own = workspace.repo.common_dir / OWN_REMOTE
    if not own.is_dir():
        return {}
    from gds_lfs.remote.directory import DirectoryRemote

    try:
        found = workspace.download(DirectoryRemote(own), wanted).fetched
    except RemoteError:  # no reason not to ask the remote
        return {}
    return {oid: manifest.size for oid, manifest in workspace.store.manifests(found).items()}


def _from_next_door(workspace: Workspace, remote: Remote, wanted: Mapping[Oid, str]) -> Mapping[Oid, int]:
    """What a repository that keeps its data itself has in its own store, pushed or not; the sizes."""
    keeper, own = os.path.split(remote.url)
    if own != OWN_REMOTE:
        return {}
    from gds_lfs.transfer.neighbour import take_over

    return take_over(workspace.store, Path(keeper) / "datasets", wanted)
