"""Where the data is of what a git remote holds, as far as this clone has seen it.

A push need not look at the commits that its git remote has already, if their data is where the new data goes. That is
taken for granted only of a place where this clone's data came from, or went to, before::

    remote.<name>.datasetsplace     that place: what the last push filled or, before any, what first gave data

Before anything was seen it is the place that the commits there name: who cannot reach the data can push code. Anywhere
else all that the pushed commits reach is looked for. And a folder that was such a place does not lose all it
holds by itself: an empty one is more likely the mount point of a drive that is not there.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gds_lfs.errors import GitDatasetsError
from gds_lfs.porcelain import foreign_agent

if TYPE_CHECKING:
    from gds_lfs.porcelain.workspace import Workspace

_KEY = "datasetsplace"


def place_of(workspace: Workspace, git_remote: str | None = None, source: str | None = None) -> str | None:
    """Where data of a git remote goes and comes from: the dataset remote's URL, an S3 server's address with it, or the
    user's own transfer agent; `source` is a commit whose `.datasetsconfig` counts. None when nobody named one that may
    be used.
    """
    with contextlib.suppress(GitDatasetsError):  # told to who uses it
        return workspace.settings.get(foreign_agent.KEY) or workspace.remote_address(git_remote, source)
    return None


def has_history(workspace: Workspace, git_remote: str, place: str) -> bool:
    """Whether the data of what a git remote holds can be taken to be at this place.

    Before anything was seen, that is where a commit that it holds says.
    """
    known = seen(workspace, git_remote)
    if known is None and (held := tracked(workspace, git_remote)) is not None:
        known = place_of(workspace, git_remote, held)
    return known == place


def seen(workspace: Workspace, git_remote: str | None) -> str | None:
    """The place where the data of what a git remote holds was seen; None before that, and where it has no name."""
    return workspace.settings.get(key(workspace, git_remote))


def may_be_unmounted(place: str | None, known: str | None) -> bool:
    """Whether nothing at a place means that it is out of reach, where `known` is the one that was seen: a folder may be
    on a drive, a bucket is not.
    """
    from gds_lfs.porcelain.s3_settings import is_s3

    return place is not None and place == known and not is_s3(place)


def remember(workspace: Workspace, git_remote: str | None, place: str | None, *, first: bool = False) -> None:
    """Data went to this place, or, with `first`, came from it: that counts where nothing else is known."""
    before = seen(workspace, git_remote)
    named = workspace.named(git_remote or workspace.git_remote()) in workspace.settings.subsections("remote", "url")
    if named and place and before != place and not (first and before):
        workspace.repo.run("config", "--local", key(workspace, git_remote), place, check=False)
        workspace.forget_settings()


def keep(workspace: Workspace, git_remote: str | None) -> None:
    """Note where data has been until now: another place is about to be named for a git remote, or for all."""
    names = [git_remote] if git_remote else list(workspace.settings.subsections("remote", "url"))
    for name in map(workspace.named, names):
        if tracked(workspace, name):
            remember(workspace, name, place_of(workspace, name), first=True)


def tracked(workspace: Workspace, git_remote: str) -> str | None:
    """A commit that a git remote is known to hold."""
    name = workspace.named(git_remote)
    found = workspace.repo.run("for-each-ref", "--count=1", "--format=%(objectname)", f"refs/remotes/{name}/")
    return found.decode().strip() or None


def key(workspace: Workspace, git_remote: str | None) -> str:
    """Where it is noted."""
    return f"remote.{workspace.named(git_remote or workspace.git_remote())}.{_KEY}"
