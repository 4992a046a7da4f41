"""Merging index shards, so that a remote that was pushed to often still has a short list of them.

Only small shards are merged: one that has grown large is left for good, or every so many pushes would write
the whole index anew. Nothing is lost when several clients do this at once, or one dies half way: what a
deleted shard said, another that is already there says too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.remote.shard import Item, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gds_lfs.content.hashing import Oid
    from gds_lfs.remote.shard import Place, Shard

__all__ = ["MAX_SHARDS", "merge", "to_merge"]

#: More small shards than this are merged by the next push.
MAX_SHARDS = 64
#: A shard of this size (bytes) is no longer merged.
LARGE_SHARD = 16 << 20


def to_merge(shards: Mapping[Oid, Shard]) -> list[Oid]:
    """The shards that are better merged into one; none as long as there are few."""
    small = [oid for oid, shard in shards.items() if shard.size < LARGE_SHARD]
    return small if len(small) > MAX_SHARDS else []


def merge(shards: Iterable[Shard], items: Iterable[Item], pack_sizes: Mapping[Oid, int], gone: set[Oid]) -> bytes:
    """The shard that says what these shards and items say.

    Where they name several places for an object, one in a pack that is not `gone` comes first, then one
    that needs no base: two clients may have stored a pair of chunks each as a delta of the other, and a
    plain copy of one must stay known.
    """
    sizes = dict(pack_sizes)
    best: dict[tuple[int, Oid], Place] = {}

    def take(item: Item) -> None:
        key = (item.kind, item.id)
        known = best.get(key)
        if known is None or _rank(item.place, gone) < _rank(known, gone):
            best[key] = item.place

    for item in items:
        take(item)
    for shard in shards:
        sizes.update(shard.packs)
        for item in shard.items():
            take(item)
    return encode((Item(kind, oid, place) for (kind, oid), place in best.items()), sizes)


def _rank(place: Place, gone: set[Oid]) -> tuple[bool, bool, Place]:
    return place.pack in gone, bool(place.base), place
