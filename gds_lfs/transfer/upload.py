"""Upload: what the remote lacks of some files, in packs, then the shard of the index that names them.

The order keeps the remote whole at every moment: a pack that no shard names is invisible, and the one shard
of an upload is written when all its packs are there. Whatever is missing or damaged here is found before
that. There are no locks: two uploads at once write packs and shards of their own. Nothing new costs two
listings.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import EMPTY, oid_of
from gds_lfs.errors import CorruptObjectError, MissingObjectError, RemoteError
from gds_lfs.remote.base import check_format, index_key
from gds_lfs.remote.draft import Spooled
from gds_lfs.store.pack import CHUNKS, MANIFESTS
from gds_lfs.transfer.consolidate import merge, to_merge
from gds_lfs.transfer.index import RemoteIndex
from gds_lfs.transfer.packing import cut_chunks, cut_manifests, fill_packs
from gds_lfs.transfer.queue import DEFAULT_RETRY, Meter, Retry, Silent, retrying, run

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from gds_lfs.content.hashing import Oid
    from gds_lfs.remote.base import Remote
    from gds_lfs.remote.shard import Item
    from gds_lfs.store.catalog import Place
    from gds_lfs.store.local import LocalStore
    from gds_lfs.store.pack import Record
    from gds_lfs.transfer.packing import PackFile
    from gds_lfs.transfer.queue import Progress

__all__ = ["UploadReport", "upload"]

#: How many paths a message names before it only counts the rest.
NAMED = 3


@dataclass(frozen=True)
class UploadReport:
    """What an upload did. `files` were not on the remote before, `chunks` of them were sent, in
    `bytes_sent`.
    """

    files: int = 0
    chunks: int = 0
    packs: int = 0
    bytes_sent: int = 0


def upload(
    store: LocalStore,
    remote: Remote,
    cache_dir: Path,
    wanted: Mapping[Oid, str],
    progress: Progress | None = None,
    *,
    retry: Retry = DEFAULT_RETRY,
    begin_anew: str | None = None,
) -> UploadReport:
    """Make the remote hold these files; the paths are for messages. `begin_anew` is for one that is known to hold
    others: what the user is told to do should it be empty.

    Raises MissingObjectError or CorruptObjectError, naming the path, if one is neither there nor whole here
    (the remote then names nothing new), and RemoteError.
    """
    wanted = {oid: path for oid, path in sorted(wanted.items(), key=lambda pair: pair[1]) if oid != EMPTY}
    if not wanted:
        return UploadReport()
    index = RemoteIndex(remote, cache_dir, retry)
    present = index.prepare_push(begin_anew)
    absent = _absent_files(store, index, wanted)
    if not absent:
        return UploadReport()
    needs = _Needs(store, index, {oid: wanted[oid] for oid in absent})
    remote.create()
    retrying(lambda: check_format(remote, create=True), retry)
    sending = _Upload(
        store, remote, index, needs, scratch=_scratch(cache_dir), progress=progress or Silent(), retry=retry
    )
    return sending.run(present)


def _scratch(cache_dir: Path) -> Path:
    """Where packs are put together: not in a temporary folder that may be as small as the memory."""
    with contextlib.suppress(OSError):
        cache_dir.mkdir(parents=True, exist_ok=True)
    return cache_dir if os.access(cache_dir, os.W_OK) else Path(tempfile.gettempdir())


def _absent_files(store: LocalStore, index: RemoteIndex, wanted: Mapping[Oid, str]) -> list[Oid]:
    """The files that the remote cannot give back, in the order of their paths."""
    left = index.missing(CHUNKS, wanted.keys())  # a file of one chunk has the chunk's id
    no_manifest = index.missing(MANIFESTS, left)
    if index.absent_packs:
        # A shard names only what was there when it was written, so chunks are asked for only after a loss.
        manifests = store.manifests(left - no_manifest)
        gone = index.missing(CHUNKS, {oid for file in manifests.values() for oid, _ in file.chunks})
        no_manifest |= {file.oid for file in manifests.values() if any(oid in gone for oid, _ in file.chunks)}
    return [oid for oid in wanted if oid in no_manifest]


class _Needs:
    """What an upload has to send: chunks with their local places, and manifests.

    Raises MissingObjectError if any of it is not here.
    """

    def __init__(self, store: LocalStore, index: RemoteIndex, files: Mapping[Oid, str]) -> None:
        self.paths = files
        places = store.locate(CHUNKS, files)
        large = store.manifests(oid for oid in files if oid not in places)
        self._refuse([oid for oid in files if oid not in places and oid not in large])
        self.chunks = {oid: [c for c, _ in large[oid].chunks] if oid in large else [oid] for oid in files}
        every = dict.fromkeys(chunk for chunks in self.chunks.values() for chunk in chunks)
        absent = index.missing(CHUNKS, every)
        places |= store.locate(CHUNKS, absent - places.keys())
        nowhere = absent - places.keys()
        if nowhere:
            self._refuse([oid for oid, chunks in self.chunks.items() if not nowhere.isdisjoint(chunks)])
        self.places: dict[Oid, Place] = {oid: places[oid] for oid in every if oid in absent}
        self.raw_size = sum(place.size for place in self.places.values())
        without = index.missing(MANIFESTS, large)
        self.manifests = [large[oid] for oid in files if oid in without]

    def path_of(self, chunk: Oid) -> str:
        """A path that a chunk is needed for."""
        return next((self.paths[oid] for oid, chunks in self.chunks.items() if chunk in chunks), "a file")

    def files_by_last_chunk(self) -> Counter[Oid]:
        """How many files are complete with a chunk, for progress."""
        return Counter(
            next((oid for oid in reversed(chunks) if oid in self.places), file) for file, chunks in self.chunks.items()
        )

    def _refuse(self, oids: list[Oid]) -> None:
        if not oids:
            return
        named = ", ".join(f"{self.paths[oid]} (sha256:{oid.hex()})" for oid in oids[:NAMED])
        more = f" and {len(oids) - NAMED} more" if len(oids) > NAMED else ""
        raise MissingObjectError(
            f"Neither here nor on the remote: {named}{more}. Nothing was pushed.\n"
            "Add the files again, or fetch them from where they still are.",
            oids[0],
        )


class _Upload:
    """One upload, from the first pack to the shard."""

    def __init__(
        self,
        store: LocalStore,
        remote: Remote,
        index: RemoteIndex,
        needs: _Needs,
        *,
        scratch: Path,
        progress: Progress,
        retry: Retry,
    ) -> None:
        self._store = store
        self._remote = remote
        self._index = index
        self._needs = needs
        self._scratch = scratch
        self._retry = retry
        self._items: list[Item] = []
        self._sizes: dict[bytes, int] = {}
        self._sent = 0
        self._finished = needs.files_by_last_chunk()
        self._meter = Meter(progress, "Uploading", needs.raw_size, len(needs.paths))

    def run(self, present: Mapping[bytes, int]) -> UploadReport:
        """Send packs, then the shard. `present` are the packs on the remote, with their sizes."""
        with self._meter, contextlib.ExitStack() as files, contextlib.closing(self._packs(files)) as packs:
            run(
                packs,
                lambda pack: self._put(pack, present),
                workers=self._remote.parallel,
                on_done=self._count,
                retry=self._retry,
            )
            self._write_shard()
            self._meter.complete()
        return UploadReport(len(self._needs.paths), len(self._needs.places), len(self._sizes), self._sent)

    def _packs(self, files: contextlib.ExitStack) -> Generator[PackFile, None, None]:
        for pack in fill_packs(self._records(), self._spooled):
            files.callback(pack.draft.close)  # also when the upload fails; without holding on to what a pack lists
            yield pack

    def _spooled(self) -> Spooled:
        """Not the remote's own draft: packs that an interrupted upload sent would be written there again."""
        return Spooled(self._remote, self._scratch)

    def _records(self) -> Iterator[Record]:
        needs = self._needs
        try:
            yield from cut_chunks(self._store, needs.places, self._index.is_plain)
        except (CorruptObjectError, MissingObjectError) as error:
            raise type(error)(
                f"{needs.path_of(error.oid)}: its copy in the local store cannot be used ({error}). "
                "Add the file again, then push.",
                error.oid,
            ) from error
        yield from cut_manifests(needs.manifests)

    def _put(self, pack: PackFile, present: Mapping[bytes, int]) -> int:
        """Send a pack, unless an interrupted upload did; returns the bytes sent."""
        if present.get(pack.id) == pack.size:
            return 0
        pack.put()
        return pack.size

    def _count(self, pack: PackFile, sent: int) -> None:
        items = pack.items()
        pack.close()
        self._sent += sent
        self._items += items
        self._sizes[pack.id] = pack.size
        self._meter.advance(pack.raw_size, sum(self._finished.pop(item.id, 0) for item in items))

    def _write_shard(self) -> None:
        old = to_merge(self._index.shards)
        shards = [self._index.shards[shard] for shard in old]
        data = merge(shards, self._items, self._sizes, self._index.absent_packs)
        shard = oid_of(data)
        retrying(lambda: self._remote.put(index_key(shard), data), self._retry)
        self._sent += len(data)
        self._index.add(shard, data)
        for each in old:
            if each != shard:
                # The push is complete; someone who may write but not delete just has a longer list.
                with contextlib.suppress(RemoteError):
                    self._remote.delete(index_key(each))
