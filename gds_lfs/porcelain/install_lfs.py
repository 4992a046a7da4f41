"""`git datasets install --lfs-agent`: the settings that make git-lfs move its objects through our agent.

They stand in the repository's own config, since git-lfs takes no program to run from a tracked file::

    lfs.customtransfer.datasets.path            the agent, by its absolute path
    lfs.customtransfer.datasets.concurrent      true: only an agent that is not alone can gather (transfer/agent.py)
    lfs.standalonetransferagent                 datasets: for every git remote
    lfs.concurrenttransfers                     5, unless the user has said: the first agent does the work of all, and
                                                git-lfs starts one after another
    lfs.transfer.batchSize                      1000, unless the user has said: each batch is on the remote before
                                                git-lfs (3.6 and later) hands out the next

or, for one of several git remotes::

    lfs.<endpoint>.standalonetransferagent      datasets: for the git remote with this LFS endpoint

Where data goes is kept as `git datasets link` keeps it for this clone, and stays when the rest is taken back.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError
from gds_lfs.git.remotes import name_of, without_credentials
from gds_lfs.porcelain import linking

if TYPE_CHECKING:
    from gds_lfs.porcelain.workspace import Workspace

NAME = "datasets"
PATH = f"lfs.customtransfer.{NAME}.path"
CONCURRENT = f"lfs.customtransfer.{NAME}.concurrent"
EVERYWHERE = "lfs.standalonetransferagent"
#: Said of git-lfs as a whole, so only where all of its objects go through the agent: LFS servers refuse large batches.
TUNING = {"lfs.concurrenttransfers": "5", "lfs.transfer.batchsize": "1000"}
_SCP = re.compile(r"(?!s3:)(?:[^/@:]+@)?[^/:]{2,}:(?!//)", re.IGNORECASE)


def install_agent(
    workspace: Workspace,
    remote: str | None = None,
    git_remote: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
) -> None:
    """Configure this repository's git-lfs. `remote` is where data goes, with the server and region of a bucket;
    `git_remote` (a name or URL) is the one git remote that it is for, None for all.

    Raises ConfigError, and RemoteError for a `remote` that is no place.
    """
    if remote and git_remote is None and _is_git_remote(workspace, remote):
        remote, git_remote = None, remote
    if (endpoint or region) and not remote:
        raise ConfigError("--endpoint and --region belong to the s3:// URL of --remote")
    place = linking.checked(workspace, remote, endpoint, region) if remote else None
    settings = {PATH: agent_program(), CONCURRENT: "true"}
    if git_remote is None:
        settings[EVERYWHERE] = NAME
        settings |= {key: value for key, value in TUNING.items() if workspace.settings.get(key) is None}
    else:
        settings[f"lfs.{lfs_server(workspace, git_remote)}.standalonetransferagent"] = NAME
    for key, value in settings.items():
        workspace.repo.run("config", "--local", "--replace-all", key, value)
    workspace.forget_settings()
    if place is not None:
        linking.keep_here(workspace, place, git_remote)
    _tell(workspace, git_remote)


def _tell(workspace: Workspace, git_remote: str | None) -> None:
    """Say what goes through the agent from now on, and where to."""
    messages, url = workspace.messages, workspace.remote_url(git_remote)
    which = without_credentials(git_remote or "")
    way = f", to and from {without_credentials(url)}" if url else ""
    what = f"what belongs to {which}" if which else "this repository's objects"
    messages.note(f"git-lfs moves {what} through the agent{way}")
    if which and workspace.settings.get(EVERYWHERE) == NAME:
        messages.warn(
            f"so does what belongs to every other git remote, since {EVERYWHERE} is set. For {which} alone: "
            f"`git datasets uninstall --lfs-agent`, then this again"
        )
    if url is None:
        messages.warn("no dataset remote is known yet: name one with `git datasets link URL`")


def uninstall_agent(workspace: Workspace) -> list[str]:
    """Take back what `install_agent` wrote, here alone; the keys that are gone."""
    listed = workspace.repo.run("config", "--local", "--name-only", "-z", "--list", check=False).decode().split("\0")
    ours = {key for key in listed if key.startswith(f"lfs.customtransfer.{NAME}.")}
    for key in set(listed):
        if key.startswith("lfs.") and key.endswith("standalonetransferagent"):
            value = workspace.repo.run("config", "--local", "--get", key, check=False).decode().strip()
            if value == NAME:
                ours.add(key)
    if EVERYWHERE in ours:
        ours.update(key for key, value in TUNING.items() if workspace.settings.get(key) == value)
    ours &= set(listed)
    for key in sorted(ours):
        workspace.repo.run("config", "--local", "--unset-all", key)
    workspace.forget_settings()
    return sorted(map(without_credentials, ours))


def agent_program() -> str:
    """The agent's absolute path. Raises ConfigError when it is not beside the Python that runs this."""
    folder = Path(sys.executable).parent
    for name in ("git-datasets-agent", "git-datasets-agent.exe"):
        if (folder / name).is_file():
            return str(folder / name)
    raise ConfigError(f"git-datasets-agent is not in {folder}: install git-datasets again (pip install)")


def lfs_server(workspace: Workspace, git_remote: str) -> str:
    """Where git-lfs believes the LFS server of a git remote to be: the URL that its settings are looked up by.

    git-lfs is asked itself for a remote that is configured here. Raises ConfigError.
    """
    name = name_of(workspace.settings, git_remote)
    # git-lfs tells of the URL that is fetched from: what is only pushed to stands for itself.
    pushed_to = workspace.settings.subsections("remote", "pushurl").get(name, ())
    if name in workspace.git_remotes() and git_remote not in pushed_to:
        told = workspace.repo.run("lfs", "env", check=False).decode("utf-8", "surrogateescape")
        default = r"(?: \(%s\))?" if name == workspace.git_remote() else r" \(%s\)"
        for line in told.splitlines():
            found = re.fullmatch(rf"Endpoint{default % re.escape(name)}=(.*?)(?: \(auth=\w+\))?", line)
            if found:
                return without_credentials(found[1])
        raise ConfigError(f"git-lfs does not tell the LFS endpoint of {name}: is it installed? (`git lfs env`)")
    if "://" not in git_remote:
        raise ConfigError(f"{git_remote} is neither a git remote of this repository nor a URL")
    return without_credentials(git_remote.rstrip("/"))


def _is_git_remote(workspace: Workspace, text: str) -> bool:
    """Whether a name or URL is a git remote's rather than a folder's or a bucket's: those never look alike."""
    names = workspace.git_remotes()
    known = text in names or name_of(workspace.settings, text) in names
    return known or bool(re.match(r"(https?|ssh|git)://", text) or _SCP.match(text))
