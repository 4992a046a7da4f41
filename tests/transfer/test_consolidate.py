from __future__ import annotations

from gds_lfs.remote.shard import Item, Place, Shard, encode
from gds_lfs.transfer import consolidate
from gds_lfs.transfer.consolidate import MAX_SHARDS, merge, to_merge

P, Q, R = b"p" * 32, b"q" * 32, b"r" * 32
X, Y, Z = b"x" * 32, b"y" * 32, b"z" * 32
SIZES = {P: 100, Q: 200, R: 300}


def shard(*items: Item) -> Shard:
    return Shard(encode(items, SIZES))


def test_few_shards_stay() -> None:
    shards = {bytes([n]) * 32: shard(Item(1, bytes([n]) * 32, Place(P, n, 1))) for n in range(MAX_SHARDS)}
    assert to_merge(shards) == []
    shards[b"!" * 32 + b""] = shard()
    shards[X] = shard()
    assert sorted(to_merge(shards)) == sorted(shards)


def test_large_shards_are_left() -> None:
    shards = {bytes([n]) * 32: shard(Item(1, X, Place(P, n, 1))) for n in range(MAX_SHARDS + 2)}
    large = shards[bytes(32)]
    large.size = consolidate.LARGE_SHARD
    assert bytes(32) not in to_merge(shards)
    assert len(to_merge(shards)) == MAX_SHARDS + 1


def test_nothing_is_lost() -> None:
    one = shard(Item(1, X, Place(P, 5, 1)), Item(2, X, Place(P, 6, 1)))
    two = shard(Item(1, Y, Place(Q, 5, 1)))
    merged = Shard(merge([one, two], [Item(1, Z, Place(R, 5, 1))], {R: 300}, set()))
    assert sorted(merged.items()) == sorted(
        [
            Item(1, X, Place(P, 5, 1)),
            Item(2, X, Place(P, 6, 1)),
            Item(1, Y, Place(Q, 5, 1)),
            Item(1, Z, Place(R, 5, 1)),
        ]
    )
    assert merged.packs == SIZES


def test_of_two_chunks_that_are_each_the_others_base_the_plain_copies_stay_known() -> None:
    one = shard(Item(1, X, Place(P, 5, 9)), Item(1, Y, Place(P, 14, 2, X)))
    two = shard(Item(1, Y, Place(Q, 5, 9)), Item(1, X, Place(Q, 14, 2, Y)))
    for order in ([one, two], [two, one]):
        merged = Shard(merge(order, [], {}, set()))
        assert merged.find_many(1, [X, Y]) == {X: Place(P, 5, 9), Y: Place(Q, 5, 9)}


def test_a_pack_that_is_gone_counts_least_but_is_not_forgotten() -> None:
    one = shard(Item(1, X, Place(P, 5, 9)), Item(1, Y, Place(P, 14, 9)))
    two = shard(Item(1, X, Place(Q, 5, 9)))
    for order in ([one, two], [two, one]):
        merged = Shard(merge(order, [], {}, {P}))
        assert merged.find_many(1, [X, Y]) == {X: Place(Q, 5, 9), Y: Place(P, 14, 9)}


def test_the_order_does_not_matter() -> None:
    one = shard(Item(1, X, Place(Q, 5, 9)))
    two = shard(Item(1, X, Place(P, 5, 9)))
    assert merge([one, two], [], {}, set()) == merge([two, one], [], {}, set())
