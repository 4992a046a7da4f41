"""Which git remote a URL means, and what the user's own config says of that remote's data.

A setting is the first of these that is there, here for the one called `region`::

    remote.<name>.datasetsregion    of one git remote
    datasets.<url>.region           of the git remote, or of the LFS server, at a URL: without user and password
    datasets.region                 of all of them

`remote`, which is where the data is kept, is spelled `remote.<name>.datasetsurl` in the first form.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gds_lfs.git.config import DatasetsConfig, Settings

_ELSEWHERE = re.compile(r"[^/\\]{2,}:")  # a scheme, or host:path

#: Below its git dir, where a repository keeps the data that is pushed to it.
OWN_REMOTE = "datasets-remote"


def remote_url(settings: Settings, shared: DatasetsConfig, git_remote: str) -> str | None:
    """Where the datasets of a git remote (a name or URL) are kept, None when nothing says so.

    The user's own config comes before the tracked file. A git remote that is a repository on this machine keeps its
    datasets itself.
    """
    key = setting_key(settings, git_remote, "remote")
    own = settings.get(key) if key else shared.remote
    if own:
        return own
    name = name_of(settings, git_remote)
    neighbour = local_git_dir(settings.get(f"remote.{name}.url") or name, settings.folder)
    return None if neighbour is None else os.path.normpath(neighbour / OWN_REMOTE)


def name_of(settings: Settings, git_remote: str) -> str:
    """The name of the git remote that has this URL, or pushes to it; a name, and any other URL, as it is."""
    by_kind = [settings.subsections("remote", kind) for kind in ("url", "pushurl")]
    if any(git_remote in by_name for by_name in by_kind):
        return git_remote
    wanted = _comparable(git_remote, settings.folder)
    for by_name in by_kind:
        for name, urls in by_name.items():
            if wanted in (_comparable(url, settings.folder) for url in urls):
                return name
    return git_remote


def setting_key(settings: Settings, git_remote: str, setting: str) -> str | None:
    """The config key that decides a setting for a git remote (a name or URL); None where the user says nothing."""
    name = name_of(settings, git_remote)
    keys = [_key_by_name(name, setting), *_keys_by_url(settings, name, setting), f"datasets.{setting}"]
    return next((key for key in keys if settings.get(key)), None)


def key_for(settings: Settings, git_remote: str | None, setting: str) -> str:
    """The config key to write a setting to: of one git remote, a name or URL, or of all (None)."""
    if git_remote is None:
        return f"datasets.{setting}"
    name = name_of(settings, git_remote)
    is_url = name not in settings.subsections("remote", "url") and _is_url_or_path(name)
    return f"datasets.{_scope(name)}.{setting}" if is_url else _key_by_name(name, setting)


def without_credentials(url: str) -> str:
    """A URL as it can be shown, and compared with others: without user and password."""
    return re.sub(r"(?<=://)[^/]*@", "", url)


def local_git_dir(url: str, base: Path) -> Path | None:
    """The common git dir of a repository on this machine that git would find under `url`, None if there is none."""
    path = url.removeprefix("file://")
    if path == url and _ELSEWHERE.match(url):
        return None
    start = base / os.path.expanduser(path)
    for candidate in (start / ".git", start, start.with_name(start.name + ".git")):
        found = _followed(candidate)
        if (found / "HEAD").is_file() and (found / "objects").is_dir():
            return found
    return None


def _followed(git_dir: Path) -> Path:
    """The common git dir behind a `.git` file and a linked worktree's `commondir`, as far as they lead."""
    try:
        if git_dir.is_file():
            text = git_dir.read_text(errors="surrogateescape")
            git_dir = git_dir.parent / text.removeprefix("gitdir:").strip()
        common = git_dir / "commondir"
        return git_dir / common.read_text(errors="surrogateescape").strip() if common.is_file() else git_dir
    except OSError:
        return git_dir


def _key_by_name(name: str, setting: str) -> str:
    return f"remote.{name}.datasets{'url' if setting == 'remote' else setting}"


def _keys_by_url(settings: Settings, name: str, setting: str) -> Iterator[str]:
    """The keys for the URLs of a git remote: git's own ones and those of its LFS server."""
    values = (settings.get(f"remote.{name}.{kind}") for kind in ("url", "pushurl", "lfsurl", "lfspushurl"))
    urls = [*(filter(None, values)), *([name] if _is_url_or_path(name) else [])]
    for url in [*urls, settings.get("lfs.url") or ""]:
        yield f"datasets.{_scope(url)}.{setting}"
        if url.startswith(("http://", "https://")):  # where git-lfs believes the LFS server to be
            yield f"datasets.{_scope(url).removesuffix('.git')}.git/info/lfs.{setting}"


def _scope(url: str) -> str:
    return without_credentials(url).rstrip("/")


def _is_url_or_path(text: str) -> bool:
    return not {"/", ":"}.isdisjoint(text)


def _comparable(url: str, base: Path) -> str:
    """The same for URLs that differ in credentials, or in how they spell a path of this machine."""
    path = url.removeprefix("file://")
    if path == url and _ELSEWHERE.match(url):
        return _scope(url)
    return os.path.normpath(base / os.path.expanduser(path))
