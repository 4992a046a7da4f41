"""`git datasets link`: the place that data is pushed to and fetched from, checked before it is written down.

It is kept in the tracked `.datasetsconfig`, for everyone, or in this clone's own config (the keys: `git/remotes.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.errors import GitError
from gds_lfs.git.config import DATASETS_CONFIG, write_datasetsconfig
from gds_lfs.git.remotes import key_for
from gds_lfs.porcelain import places
from gds_lfs.porcelain.s3_settings import TRUSTED_ENDPOINT, checked_place, trusted
from gds_lfs.remote.base import open_remote
from gds_lfs.remote.directory import DirectoryRemote

if TYPE_CHECKING:
    from gds_lfs.porcelain.workspace import Workspace


class Place(NamedTuple):
    """A folder or bucket, and the server and region of an S3 bucket where the user names them."""

    url: str
    endpoint: str | None = None
    region: str | None = None

    def __str__(self) -> str:
        return f"{self.url} ({self.endpoint})" if self.endpoint else self.url


def checked(workspace: Workspace, url: str, endpoint: str | None = None, region: str | None = None) -> Place:
    """The place that a user names; a folder on a drive that is not mounted gets a warning.

    Raises ConfigError or RemoteError for what names no place.
    """
    remote = open_remote(url, workspace.base)
    if isinstance(remote, DirectoryRemote) and not remote.root.parent.is_dir():
        workspace.messages.warn(f"{remote.root.parent} is not there: is the drive mounted? The first push needs it")
    return Place(url, *checked_place(url, endpoint, region))


def keep_here(workspace: Workspace, place: Place, git_remote: str | None = None) -> str:
    """Write a place to this clone's config, for one git remote (a name or URL) or for all; the key of its URL."""
    places.keep(workspace, git_remote)
    keys = {name: key_for(workspace.settings, git_remote, name) for name in ("remote", "endpoint", "region")}
    for key, value in zip(keys.values(), place, strict=True):
        if value is None:
            workspace.repo.run("config", "--local", "--unset-all", key, check=False)
        else:
            workspace.repo.run("config", "--local", "--replace-all", key, value)
    workspace.forget_settings()
    return keys["remote"]


def link(workspace: Workspace, place: Place, git_remote: str | None, *, local: bool) -> None:
    """Name the dataset remote: for everyone in .datasetsconfig, or for this clone (of one git remote) alone.

    The server that the user names here may have requests signed with their credentials from now on.

    Raises ConfigError for a git remote that is none, GitError when .datasetsconfig cannot be staged.
    """
    workspace.check_git_remote(git_remote)
    if git_remote or local:
        key = keep_here(workspace, place, git_remote)
        workspace.messages.note(f"this clone sends data to {place} (git config {key})")
        return
    changed = _keep_for_everyone(workspace, place)
    if place.endpoint:
        _trust(workspace, place.endpoint)
    workspace.confirm(place.url, place.endpoint)
    if changed:
        workspace.messages.note(f"data goes to {place}; staged .datasetsconfig, so that clones find it: commit it")
    else:
        workspace.messages.note(f"data goes to {place}, as .datasetsconfig says")


def _keep_for_everyone(workspace: Workspace, place: Place) -> bool:
    """Write a place to .datasetsconfig and stage that; whether it said something else before."""
    file = workspace.repo.work_tree / DATASETS_CONFIG
    text = file.read_bytes() if file.exists() else None
    before = workspace.shared_config()
    changed = (before.remote, before.endpoint, before.region) != place
    if changed:
        for name, value in zip(("remote", "endpoint", "region"), place, strict=True):
            write_datasetsconfig(workspace.repo, f"datasets.{name}", value)
    try:
        workspace.repo.run("add", "--", DATASETS_CONFIG)
    except GitError:
        file.unlink() if text is None else file.write_bytes(text)
        raise
    return changed


def _trust(workspace: Workspace, endpoint: str) -> None:
    """Approve a server for this user, in all their repositories."""
    if not trusted(workspace.settings, endpoint):
        workspace.repo.run("config", "--global", "--add", TRUSTED_ENDPOINT, endpoint)
