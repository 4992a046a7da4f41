from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote.base import FORMAT_KEY, NoSuchKeyError, encode_format, index_key, pack_key
from gds_lfs.remote.shard import Item, Place, encode
from gds_lfs.transfer.index import RemoteIndex

if TYPE_CHECKING:
    from pathlib import Path

P, Q = b"\x01" * 32, b"\x02" * 32
X, Y, Z = b"x" * 32, b"y" * 32, b"z" * 32
SIZES = {P: 10, Q: 20}


def put(remote: Any, *items: Item) -> str:
    data = encode(items, SIZES)
    key = index_key(hashlib.sha256(data).digest())
    remote.put(key, data)
    return key


def opened(remote: Any, cache: Path, retry: Any) -> RemoteIndex:
    index = RemoteIndex(remote, cache, retry)
    index.refresh()
    return index


def test_an_empty_remote(memory: Any, tmp_path: Path, prompt: Any) -> None:
    index = opened(memory, tmp_path, prompt)
    assert index.missing(1, [X]) == {X}
    assert index.locate(1, [X]) == {}
    assert memory.counted() == {"list": 1}


def test_a_known_shard_costs_one_list(memory: Any, tmp_path: Path, prompt: Any) -> None:
    put(memory, Item(1, X, Place(P, 5, 1)))
    put(memory, Item(1, Y, Place(P, 6, 1)), Item(2, Z, Place(P, 7, 1)))
    memory.counted()
    assert opened(memory, tmp_path, prompt).missing(1, [X, Y, Z]) == {Z}
    assert memory.counted() == {"list": 1, "get": 3}  # the format, two shards
    assert opened(memory, tmp_path, prompt).missing(2, [X, Y, Z]) == {X, Y}
    assert memory.counted() == {"list": 1}


def test_remotes_have_caches_of_their_own(memory: Any, tmp_path: Path, prompt: Any) -> None:
    put(memory, Item(1, X, Place(P, 5, 1)))
    opened(memory, tmp_path, prompt)
    folder = tmp_path / hashlib.sha256(b"memory").hexdigest()[:16] / "index"
    assert len(list(folder.iterdir())) == 1
    wiped = type(memory)("other")
    assert opened(wiped, tmp_path, prompt).missing(1, [X]) == {X}
    assert len(list(folder.iterdir())) == 1


def test_a_shard_that_is_gone_is_not_believed(memory: Any, tmp_path: Path, prompt: Any) -> None:
    key = put(memory, Item(1, X, Place(P, 5, 1)))
    index = opened(memory, tmp_path, prompt)
    memory.delete(key)
    index.refresh()
    assert index.missing(1, [X]) == {X}
    assert opened(memory, tmp_path, prompt).missing(1, [X]) == {X}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_damaged_copy_is_fetched_again(memory: Any, tmp_path: Path, prompt: Any) -> None:
    put(memory, Item(1, X, Place(P, 5, 1)))
    opened(memory, tmp_path, prompt)
    (copy,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    for damage in (b"", copy.read_bytes()[:-1], copy.read_bytes() + b"\0", b"\0" * len(copy.read_bytes())):
        copy.write_bytes(damage)
        assert opened(memory, tmp_path, prompt).missing(1, [X]) == set()
        assert hashlib.sha256(copy.read_bytes()).hexdigest() == copy.name


def test_a_cache_that_cannot_be_written(memory: Any, tmp_path: Path, prompt: Any) -> None:
    put(memory, Item(1, X, Place(P, 5, 1)))
    (tmp_path / "cache").write_text("a file where a folder belongs")
    assert opened(memory, tmp_path / "cache", prompt).missing(1, [X]) == set()


def test_a_shard_that_vanishes_between_list_and_get(memory: Any, tmp_path: Path, prompt: Any) -> None:
    old = put(memory, Item(1, X, Place(P, 5, 1)))

    def fault(name: str, key: str) -> None:
        if name == "get" and key == old and key in memory.objects:
            put(memory, Item(1, X, Place(P, 5, 1)), Item(1, Y, Place(P, 6, 1)))
            memory.objects.pop(old)
            raise NoSuchKeyError(key)

    memory.fault = fault
    assert opened(memory, tmp_path, prompt).missing(1, [X, Y]) == set()


def test_an_index_that_never_settles(memory: Any, tmp_path: Path, prompt: Any) -> None:
    put(memory, Item(1, X, Place(P, 5, 1)))

    def fault(name: str, key: str) -> None:
        if name == "get" and key.startswith("index/"):
            raise NoSuchKeyError(key)

    memory.fault = fault
    with pytest.raises(RemoteError, match="keeps changing"):
        opened(memory, tmp_path, prompt)


def test_a_damaged_shard_is_named(memory: Any, tmp_path: Path, prompt: Any) -> None:
    key = put(memory, Item(1, X, Place(P, 5, 1)))
    memory.damage = lambda each, data: data[:-1] + b"!" if each == key else data
    with pytest.raises(RemoteError, match=f"{key} is damaged"):
        opened(memory, tmp_path, prompt)


def test_a_newer_shard_is_refused(memory: Any, tmp_path: Path, prompt: Any) -> None:
    data = b"GDSI\x09" + bytes(40)
    memory.put(index_key(hashlib.sha256(data).digest()), data)
    with pytest.raises(RemoteError, match="newer git-datasets"):
        opened(memory, tmp_path, prompt)


def test_a_newer_format_is_refused_before_shards_are_read(memory: Any, tmp_path: Path, prompt: Any) -> None:
    key = put(memory, Item(1, X, Place(P, 5, 1)))
    memory.put(FORMAT_KEY, encode_format().replace(b"1", b"2"))
    with pytest.raises(RemoteError, match="upgrade"):
        opened(memory, tmp_path, prompt)
    assert ("get", key) not in memory.requests


def test_foreign_files_in_the_index_folder(memory: Any, tmp_path: Path, prompt: Any) -> None:
    memory.put("index/.DS_Store", b"?")
    memory.put("index/" + "a" * 64 + " (conflicted copy)", b"?")
    assert opened(memory, tmp_path, prompt).shards == {}


def test_a_listing_that_fails_for_a_moment(memory: Any, tmp_path: Path, prompt: Any) -> None:
    put(memory, Item(1, X, Place(P, 5, 1)))
    failures = iter([True, True])

    def fault(name: str, key: str) -> None:
        if name == "list" and next(failures, False):
            raise TransientRemoteError("slow down")

    memory.fault = fault
    assert opened(memory, tmp_path, prompt).missing(1, [X]) == set()


def test_a_plain_place_comes_first(memory: Any, tmp_path: Path, prompt: Any) -> None:
    put(memory, Item(1, X, Place(P, 5, 1)), Item(1, Y, Place(P, 6, 1, X)), Item(1, Z, Place(P, 7, 1, X)))
    put(memory, Item(1, Y, Place(Q, 5, 1)), Item(1, X, Place(Q, 6, 1, Y)))
    found = opened(memory, tmp_path, prompt).locate(1, [X, Y, Z])
    assert found == {X: Place(P, 5, 1), Y: Place(Q, 5, 1), Z: Place(P, 7, 1, X)}


def test_places_to_avoid(memory: Any, tmp_path: Path, prompt: Any) -> None:
    one, two = Place(P, 5, 1), Place(Q, 9, 1)
    put(memory, Item(1, X, one), Item(1, Y, Place(P, 8, 1)))
    put(memory, Item(1, X, two))
    index = opened(memory, tmp_path, prompt)
    first = index.locate(1, [X])[X]
    index.avoid(2, X, first)
    index.avoid(1, Y, first)
    assert index.locate(1, [X]) == {X: first}
    index.avoid(1, X, first)
    assert {first, index.locate(1, [X])[X]} == {one, two}
    index.avoid_pack(Q)
    index.avoid_pack(P)
    assert index.missing(1, [X, Y]) == {X, Y}


def test_packs_that_are_gone_or_cut_short(memory: Any, tmp_path: Path, prompt: Any) -> None:
    put(memory, Item(1, X, Place(P, 5, 1)), Item(1, Y, Place(Q, 5, 1)))
    index = opened(memory, tmp_path, prompt)
    memory.put(pack_key(P), b"." * 10)
    memory.put(pack_key(Q), b"." * 20)
    assert index.check_packs() == {P: 10, Q: 20}
    assert index.absent_packs == set()
    memory.objects[pack_key(Q)] = b"." * 19
    index.check_packs()
    assert index.missing(1, [X, Y]) == {Y}
