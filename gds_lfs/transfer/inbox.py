"""Downloads of single files into files, for a caller that takes each away and asks for the next.

Contents come from the repository's own store where it has them. Others are fetched into a store of the session, so
that what came along in the same frames, often the neighbours of the file that was asked for, is at hand when it is
asked for next. It may hold what a session that was interrupted had fetched.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from gds_lfs.errors import CorruptObjectError, GitDatasetsError, MissingObjectError, StoreWriteError
from gds_lfs.transfer.download import download
from gds_lfs.transfer.index import RemoteIndex
from gds_lfs.transfer.queue import DEFAULT_RETRY, Retry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.remote.base import Remote
    from gds_lfs.store.local import LocalStore
    from gds_lfs.transfer.queue import Progress

__all__ = ["Inbox"]


class Inbox:
    """Files from one remote. `own` is the repository's store, `session` one that goes when all is handed out; files are
    handed out in `folder`.
    """

    def __init__(
        self,
        remote: Remote,
        cache_dir: Path,
        *,
        own: LocalStore,
        session: LocalStore,
        folder: Path,
        retry: Retry = DEFAULT_RETRY,
    ) -> None:
        self._remote = remote
        self._cache = cache_dir
        self._own = own
        self._session = session
        self._folder = folder
        self._retry = retry
        self._index: RemoteIndex | None = None
        self._found: dict[Oid, LocalStore] = {}

    def at_hand(self, oid: Oid) -> bool:
        """Whether a content is here already."""
        store = next((store for store in (self._session, self._own) if store.has(oid)), None)
        if store is not None:
            self._found[oid] = store
        return store is not None

    def fetch(self, wanted: Sequence[Oid], progress: Progress | None = None) -> Mapping[Oid, Path | GitDatasetsError]:
        """Each content as a file, or why there is none; see agent.Downloads. Raises RemoteError if the remote cannot be
        asked at all.
        """
        absent = [oid for oid in wanted if oid not in self._found and not self.at_hand(oid)]
        if absent:
            self._download(absent, progress)
        return {oid: self._bring(oid, progress) for oid in dict.fromkeys(wanted)}

    def _download(self, absent: Iterable[Oid], progress: Progress | None) -> None:
        if self._index is None:
            index = RemoteIndex(self._remote, self._cache, self._retry)
            index.refresh()
            self._index = index
        names = {oid: oid.hex() for oid in absent}
        download(self._session, self._remote, self._cache, names, progress, retry=self._retry, index=self._index)

    def _bring(self, oid: Oid, progress: Progress | None) -> Path | GitDatasetsError:
        store = self._found.pop(oid, None)
        outcome = self._file(oid, store or self._session)
        if store is not None and isinstance(outcome, (CorruptObjectError, MissingObjectError)):
            self._download([oid], progress)  # what was at hand is damaged, or gone; the remote's may be whole
            return self._file(oid, self._session)
        return outcome

    def _file(self, oid: Oid, store: LocalStore) -> Path | GitDatasetsError:
        path = self._folder / oid.hex()
        found: GitDatasetsError
        try:
            with path.open("wb", buffering=0) as file:
                for piece in store.pieces(oid):
                    view = memoryview(piece)
                    while view:
                        view = view[file.write(view) :]
        except MissingObjectError:
            found = MissingObjectError(
                f"{self._remote.url} does not have sha256:{oid.hex()}: who has it can send it with `git lfs push`", oid
            )
        except CorruptObjectError as error:
            found = error
        except OSError as error:
            found = StoreWriteError(f"cannot write {path}: {error.strerror or error}")
        else:
            return path
        with contextlib.suppress(OSError):
            os.unlink(path)
        return found
