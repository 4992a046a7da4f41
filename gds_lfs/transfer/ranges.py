"""Which parts of which packs to ask a remote for: records that stand close together come in one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gds_lfs.remote.shard import Place

__all__ = ["Range", "plan"]

#: Bytes between two records that are cheaper to receive than to skip with another request.
GAP = 64 * 1024
#: A request is not made larger than this by joining: several smaller ones run side by side, but boto3 works for
#: milliseconds on each.
MAX_SIZE = 16 << 20


class Range(NamedTuple):
    """One request: `length` bytes from `offset` of a pack, in which the records at `places` stand."""

    pack: bytes
    offset: int
    length: int
    places: tuple[Place, ...]


def plan(places: Iterable[Place], alone: set[Place]) -> list[Range]:
    """The requests for these records, in the order of packs and offsets; those in `alone` are not joined."""
    ranges: list[Range] = []
    group: list[Place] = []
    for place in sorted(set(places)):
        if group and (place in alone or group[-1] in alone or not _joins(group, place)):
            ranges.append(_range(group))
            group = []
        group.append(place)
    if group:
        ranges.append(_range(group))
    return ranges


def _joins(group: list[Place], place: Place) -> bool:
    first, last = group[0], group[-1]
    return (
        place.pack == first.pack
        and place.offset - (last.offset + last.length) <= GAP
        and place.offset + place.length - first.offset <= MAX_SIZE
    )


def _range(group: list[Place]) -> Range:
    first, last = group[0], group[-1]
    return Range(first.pack, first.offset, last.offset + last.length - first.offset, tuple(group))
