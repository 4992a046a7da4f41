"""A repository as the verbs see it: git's side, the local store, and the remote that belongs to it.

Which remote, in order (see `git/remotes.py`): what the user's own config says of the git remote, of its URL, or of all;
`datasets.remote` in the tracked `.datasetsconfig`; beside a git remote that is a folder on this machine.
A place that only a tracked file names is remembered at its first use. When a later commit names another one, a push
is refused until `git datasets link` confirms it: nobody's data moves because somebody's commit said so. Where an S3
remote's server, region and credentials come from is told in `s3_settings.py`.
"""

from __future__ import annotations

import contextlib
import os
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from gds_lfs.errors import ConfigError, GitDatasetsError, RemoteError, StoreWriteError
from gds_lfs.git.config import DatasetsConfig, Settings, cache_dir, read_datasetsconfig
from gds_lfs.git.remotes import name_of, remote_url, without_credentials
from gds_lfs.git.repo import Repo
from gds_lfs.porcelain.messages import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.porcelain.messages import Messages
    from gds_lfs.remote.base import Remote
    from gds_lfs.remote.s3_options import S3Options
    from gds_lfs.store.local import LocalStore
    from gds_lfs.transfer.download import DownloadReport

KNOWN_REMOTE = "datasets.knownremote"
T = TypeVar("T")


class Workspace:
    """One repository with its settings and store; opened lazily, since filters start by the thousand."""

    def __init__(self, repo: Repo, messages: Messages) -> None:
        self.repo = repo
        self.messages = messages
        self._remotes: dict[tuple[str, S3Options | None], Remote] = {}
        self._requests_told: dict[str, int] = {}
        self._told: set[str] = set()

    @classmethod
    def open(cls, messages: Messages, cwd: Path | None = None) -> Workspace:
        """The repository around `cwd`. Raises NotARepositoryError."""
        return cls(Repo.discover(cwd), messages)

    @cached_property
    def settings(self) -> Settings:
        return Settings.read(self.repo)

    def forget_settings(self) -> None:
        """To be called after git's config was changed: whoever asks next reads it anew."""
        self.__dict__.pop("settings", None)

    @cached_property
    def store(self) -> LocalStore:
        from gds_lfs.store.local import LocalStore

        return LocalStore(self.repo.common_dir / "datasets")

    @property
    def scratch(self) -> Path:
        """A folder of ours on the store's file system, for files on their way to somewhere."""
        folder = self.repo.common_dir / "datasets" / "tmp"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreWriteError(f"cannot write {folder}: {error.strerror}") from error
        return folder

    @property
    def cache(self) -> Path:
        """The user's cache folder: only what can be had again."""
        return cache_dir()

    def download(self, remote: Remote, wanted: Mapping[Oid, str]) -> DownloadReport:
        """Fetch contents into the store, one command at a time; the paths are for messages. Raises RemoteError."""
        from gds_lfs.transfer.download import download

        turn = self.scratch.parent / "fetch.lock"
        try:
            return download(self.store, remote, self.cache, wanted, self.messages.progress, turn=turn)
        finally:
            self.tell_requests()

    def git_remote(self) -> str:
        """The git remote that data belongs to when none is named: the branch's own, the only one, or origin."""
        branch = self.repo.run("symbolic-ref", "-q", "--short", "HEAD", check=False).decode().strip()
        upstream = self.settings.get(f"branch.{branch}.remote") if branch else None
        if upstream and upstream != ".":
            return upstream
        remotes = self.git_remotes()
        return remotes[0] if len(remotes) == 1 else "origin"

    def git_remotes(self) -> list[str]:
        """The names of the git remotes."""
        return os.fsdecode(self.repo.run("remote", check=False)).split()

    def named(self, git_remote: str) -> str:
        """The git remote that a URL belongs to; a name, and a URL of none, as it is."""
        return name_of(self.settings, git_remote)

    def check_git_remote(self, name: str | None) -> None:
        """Raises ConfigError for a git remote that is neither known nor a URL or path."""
        if name is not None and name not in self.git_remotes() and not {"/", ":"} & {*name}:
            raise ConfigError(f"there is no git remote {name!r}; `git remote -v` lists them")

    def shared_config(self, source: str | None = None) -> DatasetsConfig:
        """`.datasetsconfig` from the work tree, the index (":") or a tree; warns once about keys it must not hold."""
        if source is None and self.repo.top is None:
            source = "HEAD"
        config = read_datasetsconfig(self.repo, source)
        for warning in config.warnings:
            if warning not in self._told:
                self._told.add(warning)
                self.messages.warn(warning)
        return config

    def _proposed(self, source: str | None) -> DatasetsConfig:
        """The `.datasetsconfig` that may name the remote. It need not be checked out (a sparse work tree, or one file
        alone): then the index or HEAD has it.
        """
        found = self.shared_config(source)
        for elsewhere in () if source else (":", "HEAD"):
            if found.remote is None:
                found = self.shared_config(elsewhere)
        return found

    def remote_url(self, git_remote: str | None = None, source: str | None = None) -> str | None:
        """The dataset remote's URL, or None when nobody named one."""
        return remote_url(self.settings, self._proposed(source), git_remote or self.git_remote())

    def remote_address(self, git_remote: str | None = None, source: str | None = None) -> str | None:
        """`remote_url`, with the address of an S3 server that is not AWS. Raises RemoteError for one not approved."""
        name, shared = git_remote or self.git_remote(), self._proposed(source)
        url = remote_url(self.settings, shared, name)
        options = self._s3_options(name, shared, url) if url else None
        if url is None or options is None:
            return url
        from gds_lfs.porcelain.s3_settings import address

        return address(url, options.endpoint)

    def open_remote(self, git_remote: str | None = None, source: str | None = None) -> Remote:
        """The dataset remote, for reading. Raises RemoteError when there is none, or its server is not approved."""
        return self._open(git_remote or self.git_remote(), self._proposed(source))

    def open_push_remote(self, git_remote: str | None = None) -> Remote:
        """The dataset remote, for writing. Raises ConfigError when a tracked file changed it unconfirmed."""
        name, shared = git_remote or self.git_remote(), self._proposed(None)
        known = self._known_places()
        from_tracked = shared.remote is not None and remote_url(self.settings, shared, name) == shared.remote
        if from_tracked and known and _place(shared) not in known:
            from gds_lfs.porcelain.s3_settings import link_command

            raise ConfigError(
                f".datasetsconfig now names {_place(shared)} as the dataset remote, where it was {known[-1]}.\n"
                f"If that is right, confirm it with "
                f"`{link_command(shared.remote or '', shared.endpoint, shared.region)}`, then push again"
            )
        return self._open(name, shared)

    def _open(self, name: str, shared: DatasetsConfig) -> Remote:
        from gds_lfs.remote.base import open_remote

        url = remote_url(self.settings, shared, name)
        if url is None:
            raise RemoteError(
                f"no dataset remote is known for {without_credentials(name)!r}: name one with `git datasets link URL` "
                f"(a folder's path, or s3://bucket/prefix)"
            )
        options = self._s3_options(name, shared, url)
        if (url, options) not in self._remotes:
            self._remotes[url, options] = open_remote(url, self.base, options)
        if url == shared.remote and not self._known_places():
            self._remember(_place(shared))
        return self._remotes[url, options]

    def _s3_options(self, name: str, shared: DatasetsConfig, url: str) -> S3Options | None:
        from gds_lfs.porcelain.s3_settings import is_s3, s3_options

        return s3_options(self.settings, shared, name, url) if is_s3(url) else None

    def prepare_remote(self, git_remote: str | None = None) -> None:
        """The dataset remote will most likely be asked soon. What is wrong with it is told when it is."""
        with contextlib.suppress(GitDatasetsError):
            self.open_remote(git_remote).prepare()

    def while_preparing(self, git_remote: str | None, work: Callable[[], T]) -> T:
        """What `work` gives, something that marshal takes, while the dataset remote gets ready (see beside.py)."""
        from gds_lfs.porcelain.beside import beside
        from gds_lfs.porcelain.s3_settings import is_s3

        try:
            remote = self.open_remote(git_remote)
        except GitDatasetsError:
            return work()
        if not is_s3(remote.url):
            return work()
        with beside(work) as result:
            remote.prepare()
            return result()

    def tell_requests(self) -> None:
        """Say how many requests were sent by now, to someone who wants to know, unless they were told."""
        for remote in self._remotes.values():
            kinds = dict(remote.traffic)
            total = sum(kinds.values())
            if total > self._requests_told.get(remote.url, 0):
                self._requests_told[remote.url] = total
                listed = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
                self.messages.detail(f"{count(total, 'request')} to {remote.url}: {listed}")

    @property
    def base(self) -> Path:
        """What a relative folder URL is relative to: the top of the work tree, of linked ones the main one's; of a bare
        repository itself.
        """
        repo = self.repo
        if repo.git_dir != repo.common_dir:
            return repo.common_dir.parent if repo.common_dir.name == ".git" else repo.common_dir
        return repo.top or repo.git_dir

    def confirm(self, url: str, endpoint: str | None = None) -> None:
        """The user named this place themselves: pushes to it need no further question."""
        from gds_lfs.porcelain.s3_settings import address

        self._remember(address(url, endpoint))

    def _known_places(self) -> list[str]:
        return self.settings.get_all(KNOWN_REMOTE)

    def _remember(self, place: str) -> None:
        if place not in self._known_places():
            self.repo.run("config", "--local", "--add", KNOWN_REMOTE, place, check=False)
            self.forget_settings()


def _place(shared: DatasetsConfig) -> str:
    """What a tracked file names: a URL, and the server's address where it says one."""
    from gds_lfs.porcelain.s3_settings import address

    return address(shared.remote or "", shared.endpoint)
