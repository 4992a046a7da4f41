"""What moves git-lfs's objects for one repository: our remotes behind the agent of transfer/agent.py.

Which remote belongs to the git remote that git-lfs names is settled as for everything else (workspace.py). What went
wrong in a way nobody foresaw is written to `<common git dir>/datasets/agent.log`, since git-lfs shows an agent's stderr
only under GIT_TRACE.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gds_lfs.content.hashing import Oid
    from gds_lfs.porcelain.session_folder import SessionFolder
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.transfer.inbox import Inbox
    from gds_lfs.transfer.outbox import Outbox

LARGEST_LOG = 1 << 20
_BEGIN_ANEW = "Should it begin anew: `git config --unset {key}`, then `git lfs push --all` to that git remote."


class LfsEngine:
    """What moves git-lfs's objects for one repository; opened at the first request, so that errors answer one."""

    def __init__(self) -> None:
        self._resources = ExitStack()
        self._interrupted = False
        self._handing_out: SessionFolder | None = None

    @cached_property
    def workspace(self) -> Workspace:
        """The repository that git-lfs runs in. Raises NotARepositoryError."""
        from gds_lfs.porcelain.messages import Messages
        from gds_lfs.porcelain.workspace import Workspace

        return Workspace.open(Messages(quiet=True))

    @property
    def batch(self) -> int:
        """lfs.transfer.batchSize, which git-lfs heeds since 3.6."""
        from gds_lfs.transfer.agent import BATCH

        told = self.workspace.settings.get("lfs.transfer.batchsize") or ""
        return int(told) if told.isdecimal() else BATCH

    def uploads(self, remote: str) -> Outbox:
        """Uploads to the dataset remote of a git remote. Raises GitDatasetsError."""
        from gds_lfs.porcelain import places
        from gds_lfs.transfer.outbox import Outbox

        name = remote or None
        target = self.workspace.open_push_remote(name)
        place, known = self.workspace.remote_address(name), places.seen(self.workspace, name)
        advice = _BEGIN_ANEW.format(key=places.key(self.workspace, name))
        begin_anew = advice if places.may_be_unmounted(place, known) else None
        outbox = Outbox(target, self.workspace.cache, self.workspace.scratch, begin_anew=begin_anew)

        def close() -> None:
            outbox.close()
            if outbox.bytes_sent:
                places.remember(self.workspace, name, place, first=True)

        self._resources.callback(close)
        return outbox

    def downloads(self, remote: str) -> Inbox:
        """Downloads from there. Raises GitDatasetsError, OSError."""
        from gds_lfs.porcelain.session_folder import SessionFolder
        from gds_lfs.store.local import LocalStore
        from gds_lfs.transfer.inbox import Inbox

        source = self.workspace.open_remote(remote or None)
        received = SessionFolder.open(self.workspace.scratch)
        self._resources.callback(lambda: received.close(keep=self._interrupted))
        session = LocalStore(received.path)
        self._resources.callback(session.close)
        self._handing_out = files = SessionFolder.open(storage(self.workspace) / "tmp")
        self._resources.callback(files.close)
        return Inbox(source, self.workspace.cache, own=self.workspace.store, session=session, folder=files.path)

    def report(self, error: BaseException) -> str:
        """Write the traceback to the log; a line that says where."""
        import traceback

        text = f"{type(error).__name__}: {error}"
        try:
            log = self.workspace.repo.common_dir / "datasets" / "agent.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            fresh = not log.exists() or log.stat().st_size > LARGEST_LOG
            with log.open("w" if fresh else "a", encoding="utf-8", errors="backslashreplace") as file:
                stamp = time.strftime("%Y-%m-%d %H:%M:%S")
                file.write(f"{stamp} {''.join(traceback.format_exception(error))}\n")
        except Exception:
            return text
        return f"{text} (details: {log})"

    def close(self, *, interrupted: bool = False) -> None:
        """Finish, and remove what only this session needed; what an interrupted one received stays for the next."""
        self._interrupted = interrupted
        self._resources.close()

    def abandon(self) -> None:
        """Remove what nobody can use, for a process that is to end whatever else it is at."""
        if self._handing_out is not None:
            self._handing_out.close()


def storage(workspace: Workspace) -> Path:
    """git-lfs's own folder in a repository: files handed over there can be renamed to their place."""
    return workspace.repo.common_dir / Path(workspace.settings.get("lfs.storage") or "lfs").expanduser()


def object_path(folder: Path, oid: Oid) -> Path:
    """Where git-lfs keeps a content below its folder."""
    name = oid.hex()
    return folder / "objects" / name[:2] / name[2:4] / name
