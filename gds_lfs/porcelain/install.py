"""`git datasets install` and `uninstall`: the filter and merge drivers in git's config, the hooks in a repository.

The entry point is recorded by its absolute path, so that a GUI client or cron with a bare PATH finds it, and
`filter.datasets.required` is on, so that a filter that cannot start fails an `add` instead of committing raw data.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError
from gds_lfs.git import hooks
from gds_lfs.git.command import failure
from gds_lfs.porcelain.messages import count

if TYPE_CHECKING:
    from gds_lfs.porcelain.messages import Messages
    from gds_lfs.porcelain.workspace import Workspace

SECTIONS = ("filter.datasets", "merge.datasets")


def program() -> list[str]:
    """The command that starts this program wherever it is called from: absolute, never looked up on PATH."""
    folder = Path(sys.executable).parent
    for name in ("git-datasets", "git-datasets.exe"):
        if (folder / name).is_file():
            return [str(folder / name)]
    return [sys.executable, "-m", "gds_lfs"]


def drivers() -> dict[str, str]:
    """The git settings that make the filter and the merge driver, by key (gitattributes(5))."""
    command = shlex.join(program())
    return {
        "filter.datasets.process": f"{command} filter-process",
        "filter.datasets.clean": f"{command} clean -- %f",
        "filter.datasets.smudge": f"{command} smudge -- %f",
        "filter.datasets.required": "true",
        "merge.datasets.name": "git datasets: whole versions, never lines",
        "merge.datasets.driver": f"{command} merge-driver %O %A %B %P",
    }


def install(messages: Messages, scope: str = "global") -> bool:
    """Write the drivers to the user's config (or, with scope "local", to this repository's). True if any changed."""
    changed = False
    for key, value in drivers().items():
        if config(f"--{scope}", "--get-all", key).splitlines() != [value]:
            config(f"--{scope}", "--replace-all", key, value, check=True)
            changed = True
    where = "for every repository of yours" if scope == "global" else "for this repository"
    messages.note(f"installed {where}" if changed else f"already installed {where}")
    return changed


def is_installed(workspace: Workspace) -> bool:
    """Whether git knows the filter here; without it tracked contents go into git itself."""
    return any(workspace.settings.get(f"filter.datasets.{key}") for key in ("process", "clean"))


def ensure_installed(workspace: Workspace) -> None:
    """Install for this repository where nobody has installed at all: what is tracked must not go into git itself."""
    if not is_installed(workspace):
        install(workspace.messages, "local")
        workspace.forget_settings()
        workspace.messages.note("`git datasets install` does that once for all your repositories, clones as well")


def uninstall(messages: Messages, workspace: Workspace | None) -> None:
    """Remove the drivers from every scope they were written to, and the hooks from this repository."""
    removed = []
    for scope in ("--global", "--local") if workspace else ("--global",):
        for section in SECTIONS:
            if config(scope, "--get-regexp", rf"^{section}\.".replace(".", r"\.", 1)):
                config(scope, "--remove-section", section, check=True)
                removed.append(f"{section} ({scope[2:]} config)")
    if workspace is not None:
        from gds_lfs.porcelain.install_lfs import uninstall_agent

        workspace.forget_settings()

        removed += [f"hook {name}" for name in hooks.uninstall(workspace.repo).changed]
        removed += uninstall_agent(workspace)
    messages.note("removed " + ", ".join(removed) if removed else "nothing was installed")
    if removed and workspace is None:
        messages.note(
            "hooks in repositories stay, and let no data into git itself; run it inside one to remove them there too"
        )
    if removed and workspace is not None and has_data(workspace) and not is_installed(workspace):
        messages.warn("what is added to this repository's tracked files goes into git itself from now on")


def has_data(workspace: Workspace) -> bool:
    """Whether any of this repository's attribute files names our filter."""
    found = workspace.repo.run("grep", "--untracked", "-l", "filter=datasets", "--", "*.gitattributes", check=False)
    return workspace.repo.top is not None and bool(found)


def install_hooks(workspace: Workspace) -> None:
    """Put the hooks into this repository; where its hooks folder is somebody else's, say what to paste."""
    report = hooks.install(workspace.repo, program())
    messages = workspace.messages
    if report.changed:
        messages.note(f"hooks installed in {report.folder}: {', '.join(report.changed)}")
    if report.edited:
        messages.warn(f"hooks edited by hand were left alone in {report.folder}: {', '.join(report.edited)}")
    if report.paste:
        lines = "\n".join(f"  {file}: {line}" for file, line in report.paste.items())
        reason = report.reason or "other hooks stand in the way"
        messages.warn(f"{reason}; nothing was written there. Add these lines to its hooks:\n{lines}")


def tell_of_pointers(workspace: Workspace) -> None:
    """How the files get their data that were checked out before git knew the filter, where there are any."""
    from gds_lfs.porcelain.checkout import unfilled
    from gds_lfs.porcelain.pointers import Selection

    left = len(unfilled(workspace, Selection()))
    if left:
        are = "is still a pointer and gets its" if left == 1 else "are still pointers and get their"
        workspace.messages.note(f"{count(left, 'file')} {are} data with: git datasets pull")


def install_hooks_quietly(workspace: Workspace) -> None:
    """The hooks of a repository whose data was just checked out, without a word unless something is wrong."""
    try:
        hooks.install(workspace.repo, program())
    except (ConfigError, OSError) as error:
        workspace.messages.warn(f"the hooks could not be installed ({error}); `git datasets install` tells more")


def config(*args: str, check: bool = False) -> str:
    """`git config ARGS`; its output. Raises GitError with git's own words when it must succeed and does not."""
    done = subprocess.run(["git", "config", *args], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise failure(["config"], done.returncode, done.stderr.encode())
    return done.stdout


def git_version() -> str:
    """What `git version` prints."""
    return subprocess.run(["git", "version"], capture_output=True, text=True, check=False).stdout.strip()
