"""Download: files that the local store lacks, by ranges of the remote's packs.

First the manifests of large files, then the chunks that are not here. Every chunk is checked against its id
before it is stored. A record that is damaged, cut short or gone is looked for in another pack; if there is
none, only the files that need it fail. What has arrived is kept whatever happens: also a process that is
killed leaves its records for the store to take over.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.content.hashing import EMPTY
from gds_lfs.content.manifest import MalformedManifest, Manifest
from gds_lfs.content.manifest import decode as decode_manifest
from gds_lfs.errors import (
    CorruptObjectError,
    GitDatasetsError,
    MissingObjectError,
    RemoteError,
    TransientRemoteError,
)
from gds_lfs.lock import FileLock
from gds_lfs.remote.base import NoSuchKeyError, ShortBodyError, pack_key
from gds_lfs.store.pack import CHUNKS, MANIFESTS, decode_record, unpack
from gds_lfs.transfer.index import RemoteIndex
from gds_lfs.transfer.queue import DEFAULT_RETRY, Meter, Retry, Silent, run
from gds_lfs.transfer.ranges import Range, plan
from gds_lfs.transfer.whole import Part, whole_packs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.remote.base import Remote
    from gds_lfs.remote.shard import Place
    from gds_lfs.store.local import LocalStore
    from gds_lfs.store.pack import Entry, Record
    from gds_lfs.store.writer import StoreWriter
    from gds_lfs.transfer.queue import Progress

__all__ = ["DownloadReport", "download"]

# A base is plain where this version wrote it; a chain that is longer than this is no better than damage.
_MAX_DEPTH = 4
# So many requests in a row that failed for good, each after all its retries, mean that the remote is down.
_OUTAGES = 3
# Seconds to wait for another download into the same store.
_PATIENCE = 600


@dataclass
class DownloadReport:
    """What a download did. Paths are those of the request.

    `missing` files are not, or not wholly, on the remote; `damaged` ones are there, in `damaged_packs` (keys), but what
    came is not right.
    """

    fetched: set[Oid] = field(default_factory=set)
    missing: dict[Oid, str] = field(default_factory=dict)
    damaged: dict[Oid, str] = field(default_factory=dict)
    damaged_packs: list[str] = field(default_factory=list)
    bytes_received: int = 0


def download(
    store: LocalStore,
    remote: Remote,
    cache_dir: Path,
    wanted: Mapping[Oid, str],
    progress: Progress | None = None,
    *,
    turn: Path | None = None,
    retry: Retry = DEFAULT_RETRY,
    index: RemoteIndex | None = None,
) -> DownloadReport:
    """Fetch those of the files that are not in the local store; they are sealed there afterwards.

    An `index` that was refreshed before saves asking for it again.

    Downloads that are given the same file as `turn` wait for each other, so that no two processes fetch the same
    into one store. It saves work, no more: where there are no locks, or the other takes too long, both go on.

    Raises RemoteError if the remote cannot be used, and GitDatasetsError for what only a newer version can read;
    what had arrived is sealed before.
    """
    store.recover()
    absent = store.missing(oid for oid in wanted if oid != EMPTY)
    if not absent:
        return DownloadReport()
    with _turn(turn) as waited:
        if waited:  # for another download, which may have fetched it, or died
            store.recover()
            absent = store.missing(absent)
        known = index or RemoteIndex(remote, cache_dir, retry)
        fetch = _Fetch(store, remote, known, retry)
        if absent:
            if index is None:
                known.refresh()
            with store.writer(framed=False) as writer:
                try:
                    fetch.run(writer, sorted(absent, key=lambda oid: wanted[oid]), progress or Silent())
                except RemoteError:
                    writer.seal()
                    raise
    return _report(wanted, absent, fetch)


@contextlib.contextmanager
def _turn(file: Path | None) -> Iterator[bool]:
    """Wait for the others that were given this file; without it, where it cannot be locked, and in time, go on. Gives
    whether there was anyone to wait for.
    """
    lock = None if file is None else FileLock(file)
    waited = False
    try:
        if file is not None and lock is not None:
            with contextlib.suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                waited = not lock.wait(0)
                if waited:
                    lock.wait(_PATIENCE)
        yield waited
    finally:
        if lock is not None:
            lock.release()


def _report(wanted: Mapping[Oid, str], absent: set[Oid], fetch: _Fetch) -> DownloadReport:
    failed = fetch.failed(absent)
    if failed and fetch.error is not None:
        raise fetch.error
    damaged = {oid for oid in failed if fetch.is_damaged(oid)}
    return DownloadReport(
        fetched=absent - failed,
        missing={oid: wanted[oid] for oid in failed - damaged},
        damaged={oid: wanted[oid] for oid in damaged},
        damaged_packs=sorted(map(pack_key, fetch.bad_packs)) if damaged else [],
        bytes_received=fetch.bytes_received,
    )


class _Received(NamedTuple):
    """A record that was asked for; None if what stands there is not it."""

    place: Place
    record: Record | None


class _Fetch:
    """The state of one download."""

    def __init__(self, store: LocalStore, remote: Remote, index: RemoteIndex, retry: Retry) -> None:
        self._store = store
        self._remote = remote
        self._index = index
        self._retry = retry
        self._manifests: dict[Oid, Manifest] = {}
        self._bad: set[tuple[int, Oid]] = set()
        self.bad_packs: set[Oid] = set()
        self._alone: set[Place] = set()
        self._outages = 0
        #: Why something did not come, if it is neither absence nor damage.
        self.error: Exception | None = None
        self._small: set[Oid] = set()
        self._absent: set[Oid] = set()
        self._finished: Counter[Oid] = Counter()
        self._meter = Meter(Silent(), "", 0, 0)  # until it is known how much there is to do
        self.bytes_received = 0

    def run(self, writer: StoreWriter, files: Sequence[Oid], progress: Progress) -> None:
        """Fetch what the remote has of these files. Raises RemoteError where it is pointless to go on."""
        self._writer = writer
        places = self._index.locate(CHUNKS, files)
        self._small = set(places)
        large = [oid for oid in files if oid not in self._small]
        self._manifests = self._store.manifests(large)
        self._fetch(MANIFESTS, set(large) - self._manifests.keys(), {})
        chunks = self._small | {oid for file in self._manifests.values() for oid, _ in file.chunks}
        self._absent = chunks - self._store.locate(CHUNKS, chunks).keys()
        self._finished = self._files_by_last_chunk()
        places |= self._index.locate(CHUNKS, self._absent - self._small)
        wanted = {oid: places[oid] for oid in self._absent if oid in places}
        size = sum(place.length for place in set(wanted.values()))
        with Meter(progress, "Downloading", size, self._finished.total()) as self._meter:
            self._absent = self._fetch(CHUNKS, self._absent, wanted)
            self._meter.complete()

    def is_damaged(self, file: Oid) -> bool:
        """Whether damage, not absence, is why a file did not come."""
        manifest = self._manifests.get(file)
        chunks = [oid for oid, _ in manifest.chunks] if manifest else [file]
        return (MANIFESTS, file) in self._bad or any((CHUNKS, oid) in self._bad for oid in chunks)

    def failed(self, files: set[Oid]) -> set[Oid]:
        """Those of the files that did not come, or not wholly."""
        large = self._manifests.items()
        cut = {oid for oid, file in large if any(chunk in self._absent for chunk, _ in file.chunks)}
        unknown = files - self._small - self._manifests.keys()
        return files & (cut | unknown | self._absent)

    def _files_by_last_chunk(self) -> Counter[Oid]:
        files = self._manifests.values()
        last = ([oid for oid, _ in file.chunks if oid in self._absent][-1:] for file in files)
        counts = Counter(self._small)
        counts.update(oid for ids in last for oid in ids)
        return counts

    def _fetch(self, kind: int, ids: Collection[Oid], located: dict[Oid, Place], depth: int = 0) -> set[Oid]:
        """Objects of one kind, from wherever they can be had; returns those for which no place is left. Where some were
        `located` already, these are tried first.
        """
        left = set(ids)
        while left:
            places: dict[Place, list[Oid]] = {}
            for oid, place in (located or self._index.locate(kind, left)).items():
                places.setdefault(place, []).append(oid)
            if not places:
                break
            located = {}
            bases = {place.base for place in places if place.base}
            if bases and depth < _MAX_DEPTH:
                self._fetch(CHUNKS, bases - self._store.locate(CHUNKS, bases).keys(), {}, depth + 1)
            if kind == CHUNKS and not depth and not self._bad:
                left -= self._take_packs(places)
                places = {place: wanted for place, ids in places.items() if (wanted := [i for i in ids if i in left])}
            left -= self._request(kind, places)
        return left

    def _take_packs(self, places: Mapping[Place, list[Oid]]) -> set[Oid]:
        """Take over the packs that are wanted nearly whole; gives the objects that came so."""
        sizes = {pack: size for shard in self._index.shards.values() for pack, size in shard.packs.items()}
        packs = whole_packs(self._store, places, sizes)
        if not packs:
            return set()

        def receive(part: Part) -> list[Entry]:
            data = self._remote.get_range(pack_key(part.range.pack), part.range.offset, part.range.length)
            return part.pack.receive(part.range, memoryview(data))

        def done(part: Part, entries: list[Entry]) -> None:
            self._outages = 0
            self.bytes_received += part.range.length
            oids = (oid for entry in entries for oid, _ in entry.header.members)
            self._meter.advance(part.range.length, sum(self._finished.pop(oid, 0) for oid in oids))
            part.pack.took(entries)

        def failed(part: Part, error: Exception) -> None:
            part.pack.given_up = True
            if not isinstance(error, CorruptObjectError):
                self._judge(part.range, error)

        try:
            parts = (part for pack in packs for part in pack.parts())
            run(parts, receive, workers=self._remote.parallel, on_done=done, on_failed=failed, retry=self._retry)
        finally:
            for pack in packs:
                pack.close()
            self._store.recover()
        came: set[Oid] = set()
        for pack in packs:
            wanted = [oid for oids in pack.places.values() for oid in oids]
            came.update(wanted if pack.taken else self._store.locate(CHUNKS, wanted))
        return came

    def _request(self, kind: int, places: Mapping[Place, list[Oid]]) -> set[Oid]:
        """One round: ask for every place once. One that fails is not given out again, or asked for alone."""
        got: set[Oid] = set()

        def done(wanted: Range, received: list[_Received]) -> None:
            self._outages = 0
            self.bytes_received += wanted.length
            for place, record in received:
                taken = self._take(kind, places[place], record) if record else set()
                self._fail(kind, place, [oid for oid in places[place] if oid not in taken])
                got.update(taken)
                self._meter.advance(place.length, sum(self._finished.pop(oid, 0) for oid in taken))

        def failed(wanted: Range, error: Exception) -> None:
            self._judge(wanted, error)
            if isinstance(error, ShortBodyError) and len(wanted.places) > 1:
                self._alone.update(wanted.places)
            elif not isinstance(error, NoSuchKeyError):
                for place in wanted.places:
                    self._fail(kind, place, places[place])

        run(
            plan(places, self._alone),
            self._receive,
            workers=self._remote.parallel,
            on_done=done,
            on_failed=failed,
            retry=self._retry,
        )
        return got

    def _judge(self, wanted: Range, error: Exception) -> None:
        """Raise what makes it pointless to go on."""
        if isinstance(error, NoSuchKeyError):
            self._index.avoid_pack(wanted.pack)
        elif isinstance(error, TransientRemoteError):
            self._outages += 1
            self.error = error
            if self._outages >= _OUTAGES:
                raise error
        elif not isinstance(error, ShortBodyError):
            raise error

    def _receive(self, wanted: Range) -> list[_Received]:
        """Ask for a range and check the records in it. Runs in a worker thread."""
        data = memoryview(self._remote.get_range(pack_key(wanted.pack), wanted.offset, wanted.length))
        received = []
        for place in wanted.places:
            start = place.offset - wanted.offset
            received.append(_Received(place, self._checked(data[start : start + place.length])))
        return received

    def _checked(self, data: memoryview) -> Record | None:
        try:
            record = decode_record(data)
            unpack(record, self._store.chunk)
        except (CorruptObjectError, MissingObjectError):
            return None
        except GitDatasetsError as error:  # a newer version's encoding: told when the rest has come
            self.error = self.error or error
            return None
        return record

    def _take(self, kind: int, ids: list[Oid], record: Record) -> set[Oid]:
        """Store a record; gives those of the objects that it really holds, whatever the index says."""
        if record.header.kind != kind:
            return set()
        taken = {oid for oid, _ in record.header.members}.intersection(ids)
        if kind == MANIFESTS:
            taken = self._read_manifests(taken, record)
        if taken:
            self._writer.add_record(record)
        return taken

    def _read_manifests(self, ids: set[Oid], record: Record) -> set[Oid]:
        """Take in those manifests that were asked for; others may share the record."""
        found = {oid: data for oid, data in unpack(record, self._store.chunk) if oid in ids}
        for oid, data in found.items():
            with contextlib.suppress(MalformedManifest):
                self._manifests[oid] = decode_manifest(oid, data)
        return ids & self._manifests.keys()

    def _fail(self, kind: int, place: Place, ids: list[Oid]) -> None:
        for oid in ids:
            self._index.avoid(kind, oid, place)
            self._bad.add((kind, oid))
            self.bad_packs.add(place.pack)
