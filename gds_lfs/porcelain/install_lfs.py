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
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError

if TYPE_CHECKING:
    from gds_lfs.porcelain.workspace import Workspace

NAME = "datasets"
PATH = f"lfs.customtransfer.{NAME}.path"
CONCURRENT = f"lfs.customtransfer.{NAME}.concurrent"
EVERYWHERE = "lfs.standalonetransferagent"
#: Said of git-lfs as a whole, so only where all of its objects go through the agent: LFS servers refuse large batches.
TUNING = {"lfs.concurrenttransfers": "5", "lfs.transfer.batchsize": "1000"}
_SCP = re.compile(r"(?:[^/@:]+@)?[^/:]{2,}:(?!//)")


def install_agent(workspace: Workspace, remote: str | None = None, git_remote: str | None = None) -> None:
    """Configure this repository's git-lfs. `remote` is where data goes; `git_remote` (a name or URL) is the one git
    remote that it is for, None for all. Raises ConfigError.
    """
    if remote and git_remote is None and _is_git_remote(workspace, remote):
        remote, git_remote = None, remote
    settings = {PATH: agent_program(), CONCURRENT: "true"}
    if git_remote is None:
        settings[EVERYWHERE] = NAME
        settings |= {key: value for key, value in TUNING.items() if workspace.settings.get(key) is None}
    else:
        place = endpoint(workspace, git_remote)
        settings[f"lfs.{place}.standalonetransferagent"] = NAME
    named = git_remote is not None and git_remote in workspace.repo.run("remote").decode().split()
    if remote:
        settings[f"remote.{git_remote}.datasetsurl" if named else "datasets.remote"] = remote
    for key, value in settings.items():
        workspace.repo.run("config", "--local", "--replace-all", key, value)
    workspace.__dict__.pop("settings", None)
    where = f"what belongs to {git_remote}" if git_remote else "this repository's objects"
    url = workspace.remote_url(git_remote)
    workspace.messages.note(f"git-lfs moves {where} through the agent" + (f", to and from {url}" if url else ""))
    if url is None:
        workspace.messages.warn("no dataset remote is known yet: name one with `git datasets link URL`")


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
    return sorted(ours)


def agent_program() -> str:
    """The agent's absolute path. Raises ConfigError when it is not beside the Python that runs this."""
    folder = Path(sys.executable).parent
    for name in ("git-datasets-agent", "git-datasets-agent.exe"):
        if (folder / name).is_file():
            return str(folder / name)
    raise ConfigError(f"git-datasets-agent is not in {folder}: install git-datasets again (pip install)")


def endpoint(workspace: Workspace, git_remote: str) -> str:
    """Where git-lfs believes the LFS server of a git remote to be: the URL that its settings are looked up by.

    git-lfs is asked itself for a remote that is configured here. Raises ConfigError.
    """
    names = workspace.repo.run("remote").decode().split()
    by_url = {workspace.settings.get(f"remote.{name}.url"): name for name in names}
    name = git_remote if git_remote in names else by_url.get(git_remote)
    if name is not None:
        told = workspace.repo.run("lfs", "env", check=False).decode("utf-8", "surrogateescape")
        default = r"(?: \(%s\))?" if name == workspace.git_remote() else r" \(%s\)"
        for line in told.splitlines():
            found = re.fullmatch(rf"Endpoint{default % re.escape(name)}=(.*?)(?: \(auth=\w+\))?", line)
            if found:
                return found[1]
        raise ConfigError(f"git-lfs does not tell the LFS endpoint of {name}: is it installed? (`git lfs env`)")
    if "://" not in git_remote:
        raise ConfigError(f"{git_remote} is neither a git remote of this repository nor a URL")
    return git_remote.rstrip("/")


def _is_git_remote(workspace: Workspace, text: str) -> bool:
    """Whether a name or URL is a git remote's rather than a folder's or a bucket's: those never look alike."""
    names = workspace.repo.run("remote").decode().split()
    urls = [workspace.settings.get(f"remote.{name}.url") for name in names]
    return text in names or text in urls or bool(re.match(r"(https?|ssh|git)://", text) or _SCP.match(text))
