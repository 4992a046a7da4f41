"""What a remote holds, by its index shards, of which a copy is kept in the user's cache.

The remote is asked each time which shards there are, so a copy never speaks for a shard that is gone. A copy
is used only if its SHA-256 is its name; one that is damaged, or absent, is fetched again.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import time
from typing import TYPE_CHECKING

from gds_lfs.errors import RemoteError
from gds_lfs.remote.base import (
    FORMAT_KEY,
    INDEX_PREFIX,
    PACKS_PREFIX,
    AbsentRemoteError,
    NoSuchKeyError,
    check_format,
    index_key,
    parse_index_key,
    parse_pack_key,
)
from gds_lfs.remote.shard import MalformedShardError, Shard
from gds_lfs.store.pack import CHUNKS
from gds_lfs.transfer.queue import DEFAULT_RETRY, Retry, retrying, run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from gds_lfs.remote.base import Remote
    from gds_lfs.remote.shard import Place

__all__ = ["RemoteIndex"]

# Someone who merges shards makes a listing stale once; more often than this something else is wrong.
_LISTINGS = 5
# Writing one copy takes no hour; what is older than this (seconds) was left by a process that was killed.
_LEFTOVER_AGE = 3600


class RemoteIndex:
    """All shards of a remote, searched as one. `refresh` comes first.

    What asks the remote, or looks into a malformed shard, raises RemoteError.
    """

    def __init__(self, remote: Remote, cache_dir: Path, retry: Retry = DEFAULT_RETRY) -> None:
        self._remote = remote
        self._retry = retry
        place = hashlib.sha256(remote.url.encode(errors="surrogateescape")).hexdigest()
        self._cache = cache_dir / place[:16] / "index"
        self.shards: dict[bytes, Shard] = {}
        #: Packs that shards name but that are known to be gone.
        self.absent_packs: set[bytes] = set()
        self._refused: set[tuple[int, bytes, Place]] = set()

    def refresh(self) -> None:
        """Ask which shards there are and read those not known yet: one list where nothing is new."""
        for _ in range(_LISTINGS):
            listed = dict(self._list(INDEX_PREFIX))
            known = {shard: self.shards.get(shard) or self._cached(shard) for shard in listed}
            self.shards = {shard: value for shard, value in known.items() if value is not None}
            try:
                self._download([shard for shard in listed if shard not in self.shards])
            except NoSuchKeyError:
                continue
            self._forget_others()
            return
        raise RemoteError(f"{self._remote.url}: the index there keeps changing; try again.")

    def check_packs(self) -> dict[bytes, int]:
        """Ask which packs there are; what the shards say of others is not believed from now on."""
        present = dict(self._list(PACKS_PREFIX))
        for shard in self.shards.values():
            self.absent_packs |= {pack for pack, size in shard.packs.items() if present.get(pack) != size}
        return present

    def prepare_push(self, begin_anew: str | None) -> dict[bytes, int]:
        """`refresh` and `check_packs` for a remote that need not be there yet.

        `begin_anew` is for one that is known to hold something: what the user is told to do should it be empty, with a
        RemoteError. A drive that is not mounted leaves an empty folder behind, which is no place to begin anew unasked.
        """
        packs: dict[bytes, int] = {}
        with contextlib.suppress(AbsentRemoteError):
            self.refresh()
            packs = self.check_packs()
        if begin_anew:
            self._refuse_empty(packs, begin_anew)
        return packs

    def _refuse_empty(self, packs: Collection[bytes], begin_anew: str) -> None:
        if not self.shards and not packs and retrying(lambda: self._remote.size(FORMAT_KEY), self._retry) is None:
            raise RemoteError(
                f"{self._remote.url} is empty, and this clone's data has been there: is the drive mounted, or was it "
                f"cleared? Nothing was sent.\n{begin_anew}"
            )

    def avoid(self, kind: int, oid: bytes, place: Place) -> None:
        """Do not give out this place for this object again: it is not there, or damaged."""
        self._refused.add((kind, oid, place))

    def avoid_pack(self, pack: bytes) -> None:
        """Do not give out places in this pack again."""
        self.absent_packs.add(pack)

    def missing(self, kind: int, ids: Collection[bytes]) -> set[bytes]:
        """Those of the objects that the remote does not hold."""
        return set(ids) - self.locate(kind, ids).keys()

    def locate(self, kind: int, ids: Collection[bytes]) -> dict[bytes, Place]:
        """Where the objects are, as far as the remote holds them; rather a place that needs no base."""
        left = set(ids)
        found: dict[bytes, Place] = {}
        for shard in self.shards.values():
            if not left:
                break
            here = self._search(shard, kind, left)
            if self.absent_packs or self._refused:
                here = {oid: place for oid, place in here.items() if self._is_usable(kind, oid, place)}
            plain = {oid: place for oid, place in here.items() if not place.base}
            for oid in here.keys() - plain.keys():
                found.setdefault(oid, here[oid])
            found.update(plain)
            left -= plain.keys()
        return found

    def is_plain(self, chunk: bytes) -> bool:
        """Whether the remote holds a chunk in a form that others may be encoded on: one that has no base."""
        place = self.locate(CHUNKS, [chunk]).get(chunk)
        return place is not None and not place.base

    def _is_usable(self, kind: int, oid: bytes, place: Place) -> bool:
        return place.pack not in self.absent_packs and (kind, oid, place) not in self._refused

    def add(self, shard: bytes, data: bytes) -> None:
        """Take in a shard whose bytes are at hand."""
        self.shards[shard] = self._read(shard, data)
        self._keep(shard, data)

    def _search(self, shard: Shard, kind: int, ids: set[bytes]) -> dict[bytes, Place]:
        try:
            return shard.find_many(kind, ids)
        except MalformedShardError as error:
            raise RemoteError(f"{self._remote.url}: its index is malformed: {error}.") from error

    def _list(self, prefix: str) -> Iterator[tuple[bytes, int]]:
        parse = parse_index_key if prefix == INDEX_PREFIX else parse_pack_key
        for entry in retrying(lambda: list(self._remote.list(prefix)), self._retry):
            oid = parse(entry.key)
            if oid is not None:
                yield oid, entry.size

    def _download(self, shards: list[bytes]) -> None:
        if not shards:
            return
        retrying(lambda: check_format(self._remote), self._retry)
        run(
            shards,
            lambda shard: self._remote.get(index_key(shard)),
            workers=self._remote.parallel,
            on_done=self.add,
            retry=self._retry,
        )

    def _read(self, shard: bytes, data: bytes | mmap.mmap) -> Shard:
        key = index_key(shard)
        if hashlib.sha256(data).digest() != shard:
            raise RemoteError(
                f"{self._remote.url}: {key} is damaged. "
                "Delete it there, then run `git datasets push --all` in the clones that hold the data."
            )
        try:
            return Shard(data)
        except MalformedShardError as error:
            raise RemoteError(f"{self._remote.url}: {key} cannot be read: {error}.") from error

    def _cached(self, shard: bytes) -> Shard | None:
        try:
            with (self._cache / shard.hex()).open("rb") as file:
                return self._read(shard, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError, RemoteError):  # absent, empty, damaged: all the same as not cached
            return None

    def _keep(self, shard: bytes, data: bytes) -> None:
        # A cache that cannot be written costs time, not success.
        with contextlib.suppress(OSError):
            self._cache.mkdir(parents=True, exist_ok=True)
            temporary = self._cache / f"tmp-{os.urandom(8).hex()}"
            try:
                temporary.write_bytes(data)
                temporary.replace(self._cache / shard.hex())
            finally:
                temporary.unlink(missing_ok=True)

    def _forget_others(self) -> None:
        """Remove the copies of shards that are gone from the remote."""
        kept = {shard.hex() for shard in self.shards}
        recent = time.time() - _LEFTOVER_AGE
        with contextlib.suppress(OSError), os.scandir(self._cache) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    live = entry.name.startswith("tmp-") and entry.stat().st_mtime > recent
                    if entry.name not in kept and not live:
                        os.unlink(entry.path)
