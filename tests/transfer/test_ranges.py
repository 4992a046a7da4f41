from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.remote.shard import Place
from gds_lfs.transfer.ranges import GAP, MAX_SIZE, Range, plan

P, Q = b"p" * 32, b"q" * 32


def test_neighbours_come_together() -> None:
    a, b, c = Place(P, 5, 10), Place(P, 15, 10), Place(P, 25 + GAP, 10)
    assert plan([c, a, b, a], set()) == [Range(P, 5, 30 + GAP, (a, b, c))]


def test_a_gap_that_is_too_large() -> None:
    a, b = Place(P, 5, 10), Place(P, 16 + GAP, 10)
    assert plan([a, b], set()) == [Range(P, 5, 10, (a,)), Range(P, 16 + GAP, 10, (b,))]


def test_packs_are_apart() -> None:
    a, b = Place(P, 5, 10), Place(Q, 15, 10)
    assert plan([b, a], set()) == [Range(P, 5, 10, (a,)), Range(Q, 15, 10, (b,))]


def test_those_that_must_come_alone() -> None:
    a, b, c, d = (Place(P, 10 * n, 10) for n in range(4))
    assert [each.places for each in plan([a, b, c, d], {b})] == [(a,), (b,), (c, d)]


def test_one_record_may_be_larger_than_a_request() -> None:
    a, b = Place(P, 0, MAX_SIZE * 2), Place(P, MAX_SIZE * 2, 1)
    assert [each.places for each in plan([a, b], set())] == [(a,), (b,)]


records = st.lists(st.tuples(st.sampled_from([P, Q]), st.integers(1, 3 << 20), st.integers(0, 200_000)), max_size=40)


@given(records)
def test_each_record_stands_in_its_range(sizes: list[tuple[bytes, int, int]]) -> None:
    ends = {P: 5, Q: 5}
    places = []
    for pack, length, gap in sizes:
        places.append(Place(pack, ends[pack] + gap, length))
        ends[pack] += gap + length
    ranges = plan(places, set())
    assert sorted(place for each in ranges for place in each.places) == sorted(places)
    for each in ranges:
        assert each.length <= MAX_SIZE
        assert each.length - sum(place.length for place in each.places) <= GAP * (len(each.places) - 1)
        for place in each.places:
            assert place.pack == each.pack
            assert each.offset <= place.offset
            assert place.offset + place.length <= each.offset + each.length
