from __future__ import annotations

import errno
import hashlib
import random
from typing import TYPE_CHECKING, Any

import pytest

from gds_lfs.errors import RemoteError, StoreWriteError, TransientRemoteError
from gds_lfs.lock import FileLock
from gds_lfs.remote.base import NoSuchKeyError, open_remote
from gds_lfs.remote.shard import Shard
from gds_lfs.store import pack
from gds_lfs.store.writer import StoreWriter
from gds_lfs.transfer import download as downloading
from gds_lfs.transfer import packing, whole
from gds_lfs.transfer.download import download
from gds_lfs.transfer.upload import upload

if TYPE_CHECKING:
    from pathlib import Path

LARGE = random.Random(1).randbytes(900_000)
SMALL = [random.Random(1000 + n).randbytes(3000 + n) for n in range(40)]
FRAMES = [random.Random(50 + n).randbytes(100_000) for n in range(30)]  # three records


def oid(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@pytest.fixture(autouse=True, params=[whole.SMALLEST, 0], ids=["by record", "whole packs"])
def smallest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Nothing that can be told from outside depends on how a pack is taken."""
    monkeypatch.setattr(whole, "SMALLEST", request.param)
    return int(request.param)


@pytest.fixture
def filled(clone: Any, memory: Any, prompt: Any) -> dict[bytes, str]:
    """What the remote in memory holds."""
    wanted: dict[bytes, str] = clone.add(LARGE, *SMALL, *FRAMES)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    memory.counted()
    return wanted


def test_requests_are_few(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert memory.counted() == {"list": 1, "get": 2, "get_range": 2}
    assert report.fetched == filled.keys()
    assert report.bytes_received >= 900_000
    assert other.holds(LARGE, *SMALL, *FRAMES)


def test_what_is_here_costs_nothing(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    download(other.store, memory, other.cache, filled, retry=prompt)
    memory.counted()
    report = download(other.store, memory, other.cache, filled | {oid(b""): "empty"}, retry=prompt)
    assert (report.fetched, report.bytes_received) == (set(), 0)
    assert memory.counted() == {}


def test_only_what_is_wanted_comes(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    one = {oid(FRAMES[0]): filled[oid(FRAMES[0])]}
    report = download(other.store, memory, other.cache, one, retry=prompt)
    assert report.fetched == one.keys()
    assert report.bytes_received < 1_200_000
    assert not other.store.has(oid(LARGE))


def test_everything_is_sealed(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, tmp_path: Path) -> None:
    download(other.store, memory, other.cache, filled, retry=prompt)
    assert list((tmp_path / "two" / "datasets" / "tmp").iterdir()) == []
    assert type(other.store)(tmp_path / "two" / "datasets").missing(filled) == set()


def test_progress(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, watcher: Any) -> None:
    failed: set[str] = set()

    def fault(name: str, key: str) -> None:
        if (name + key) not in failed:
            failed.add(name + key)
            raise TransientRemoteError("503")

    memory.fault = fault
    report = download(other.store, memory, other.cache, filled, watcher, retry=prompt)
    assert report.fetched == filled.keys()
    ((what, size, items),) = watcher.totals
    assert (what, items) == ("Downloading", len(filled))
    assert watcher.sums == [size, items]
    assert watcher.ended == 1


def test_files_that_the_remote_never_had(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    never = {oid(b"never"): "never.bin"}
    report = download(other.store, memory, other.cache, filled | never, retry=prompt)
    assert report.missing == never
    assert report.damaged == {}
    assert report.fetched == filled.keys()


def test_packs_that_are_gone(clone: Any, other: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(*FRAMES)
    lost = {oid(FRAMES[7]): wanted[oid(FRAMES[7])], oid(FRAMES[21]): wanted[oid(FRAMES[21])]}
    for each in lost:
        upload(clone.store, memory, clone.cache, {each: "x"}, retry=prompt)
    gone = memory.keys("packs/")
    rest = {each: path for each, path in wanted.items() if each not in lost}
    upload(clone.store, memory, clone.cache, rest, retry=prompt)
    for key in gone:
        memory.objects.pop(key)
    report = download(other.store, memory, other.cache, wanted, retry=prompt)
    assert report.missing == lost
    assert report.fetched == rest.keys()
    assert other.holds(*[data for data in FRAMES if oid(data) not in lost])


def place_of(memory: Any, kind: int, data: bytes) -> tuple[str, int, int]:
    for key in memory.keys("index/"):
        place = Shard(memory.objects[key]).find_many(kind, [oid(data)]).get(oid(data))
        if place:
            name = place.pack.hex()
            return f"packs/{name[:2]}/{name}.pack", place.offset, place.length
    raise AssertionError("nowhere")


def flip(memory: Any, key: str, at: int) -> None:
    data = bytearray(memory.objects[key])
    data[at] ^= 1
    memory.objects[key] = bytes(data)


@pytest.mark.parametrize("where", ["header", "payload"])
def test_damage_hits_only_the_files_in_it(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, where: str
) -> None:
    key, offset, length = place_of(memory, pack.CHUNKS, FRAMES[0])
    flip(memory, key, offset + 10 if where == "header" else offset + length - 1)
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert report.missing == {}
    assert oid(FRAMES[0]) in report.damaged
    assert len(report.damaged) < 15
    assert report.fetched == filled.keys() - report.damaged.keys()
    assert all(report.damaged[each] == filled[each] for each in report.damaged)
    assert other.store.missing(filled) == report.damaged.keys()
    # The next time it is asked for again, and what is right now arrives.
    flip(memory, key, offset + 10 if where == "header" else offset + length - 1)
    again = download(other.store, memory, other.cache, filled, retry=prompt)
    assert again.fetched == report.damaged.keys()


def test_a_damaged_manifest(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    key, offset, length = place_of(memory, pack.MANIFESTS, LARGE)
    flip(memory, key, offset + length - 1)
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert report.damaged == {oid(LARGE): filled[oid(LARGE)]}
    assert other.holds(*SMALL)


def test_a_pack_that_is_cut_short(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    (key,) = memory.keys("packs/")
    whole = memory.objects[key]
    memory.objects[key] = whole[: len(whole) * 83 // 100]
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert report.fetched
    assert report.damaged
    assert report.missing == {}
    assert report.fetched | report.damaged.keys() == filled.keys()
    memory.objects[key] = whole
    assert download(other.store, memory, other.cache, filled, retry=prompt).fetched == report.damaged.keys()
    assert other.holds(LARGE, *SMALL, *FRAMES)


@pytest.mark.parametrize("broken", [0, 1])
def test_another_copy_serves(clone: Any, other: Any, third: Any, memory: Any, prompt: Any, broken: int) -> None:
    # Two who saw an empty remote pushed the same file, each in a pack of his own.
    wanted = {oid(FRAMES[0]): "x"}
    upload(clone.store, memory, clone.cache, clone.add(FRAMES[0]), retry=prompt)
    apart = type(memory)()
    upload(third.store, apart, third.cache, third.add(FRAMES[0], *SMALL), retry=prompt)
    memory.objects |= apart.objects
    key = memory.keys("packs/")[broken]
    flip(memory, key, memory.objects[key].index(FRAMES[0][500:600]))
    report = download(other.store, memory, other.cache, wanted, retry=prompt)
    assert report.fetched == wanted.keys()
    assert other.holds(FRAMES[0])


def test_a_connection_that_fails_for_one_pack(
    clone: Any, other: Any, memory: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PACK_SIZE", 1_000_000)
    wanted = clone.add(*FRAMES)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    bad = memory.keys("packs/")[0]

    def fault(name: str, key: str) -> None:
        if key == bad:
            raise TransientRemoteError("cut off")

    memory.fault = fault
    with pytest.raises(RemoteError, match="cut off"):
        download(other.store, memory, other.cache, wanted, retry=prompt)
    left = other.store.missing(wanted)
    assert 0 < len(left) < len(wanted)
    memory.fault = lambda name, key: None
    assert download(other.store, memory, other.cache, wanted, retry=prompt).fetched == left


def test_a_remote_that_is_down_is_not_asked_for_ever(
    clone: Any, other: Any, memory: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PACK_SIZE", 100_000)
    wanted = clone.add(*FRAMES)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    memory.counted()

    def fault(name: str, key: str) -> None:
        if name == "get_range":
            raise TransientRemoteError("down")

    memory.fault = fault
    with pytest.raises(RemoteError, match="down"):
        download(other.store, memory, other.cache, wanted, retry=prompt)
    assert memory.counted()["get_range"] <= (3 + memory.parallel) * prompt.attempts


def test_errors_of_the_server_end_it(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    def fault(name: str, key: str) -> None:
        if name == "get_range":
            raise RemoteError("forbidden")

    memory.fault = fault
    with pytest.raises(RemoteError, match="forbidden"):
        download(other.store, memory, other.cache, filled, retry=prompt)


def test_an_absent_folder(other: Any, prompt: Any, tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="is not there"):
        download(other.store, open_remote("nowhere", tmp_path), other.cache, {oid(b"1"): "x"}, retry=prompt)


def test_an_index_that_lies(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    from gds_lfs.remote.base import index_key
    from gds_lfs.remote.shard import Item, encode

    (key,) = memory.keys("index/")
    shard = Shard(memory.objects.pop(key))
    place = shard.find_many(pack.CHUNKS, [oid(FRAMES[0])])[oid(FRAMES[0])]
    wrong = [Item(pack.CHUNKS, oid(b"other"), place), Item(pack.MANIFESTS, oid(b"file"), place)]
    data = encode([*shard.items(), *wrong, Item(1, oid(b"far"), place._replace(offset=1 << 40))], shard.packs)
    memory.put(index_key(hashlib.sha256(data).digest()), data)
    lies = {oid(b"other"): "a", oid(b"file"): "b", oid(b"far"): "c"}
    report = download(other.store, memory, other.cache, filled | lies, retry=prompt)
    assert report.damaged == lies
    assert report.fetched == filled.keys()


def test_a_delta_on_itself_is_damage_not_a_loop(other: Any, memory: Any, prompt: Any) -> None:
    from gds_lfs.remote.base import index_key
    from gds_lfs.remote.shard import Item, Place, encode

    x, y, where = oid(b"x"), oid(b"y"), b"p" * 32
    items = [Item(pack.CHUNKS, x, Place(where, 5, 10, y)), Item(pack.CHUNKS, y, Place(where, 15, 10, x))]
    data = encode(items, {where: 100})
    memory.put(index_key(hashlib.sha256(data).digest()), data)
    memory.put(f"packs/{where.hex()[:2]}/{where.hex()}.pack", bytes(100))
    report = download(other.store, memory, other.cache, {x: "x"}, retry=prompt)
    assert report.damaged == {x: "x"}


def test_a_newer_versions_record_is_told_after_the_rest_came(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any
) -> None:
    from gds_lfs.errors import GitDatasetsError
    from gds_lfs.remote.base import index_key, pack_key
    from gds_lfs.remote.shard import Item, Place, encode

    new = oid(b"new")
    record = pack.Record(pack.Header(pack.CHUNKS, 9, ((new, 3),), 3, 3, pack.NO_BASE, 0), b"new")
    data = pack.PACK_HEADER + pack.encode_record(record) + pack.encode_footer([record.header.encode()])
    where = hashlib.sha256(data).digest()
    memory.put(pack_key(where), data)
    shard = encode([Item(pack.CHUNKS, new, Place(where, 5, record.header.record_size))], {where: len(data)})
    memory.put(index_key(hashlib.sha256(shard).digest()), shard)
    with pytest.raises(GitDatasetsError, match="newer git-datasets"):
        download(other.store, memory, other.cache, filled | {new: "new"}, retry=prompt)
    assert other.store.missing(filled) == set()
    assert other.store.packs()
    assert other.store.recover() == 0


def test_a_pack_that_goes_while_it_is_read(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    def fault(name: str, key: str) -> None:
        if name == "get_range":
            raise NoSuchKeyError(key)

    memory.fault = fault
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert report.missing == filled


def test_a_full_disk(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, record: object) -> None:
        raise StoreWriteError("no space")

    monkeypatch.setattr(StoreWriter, "add_record", full)
    with pytest.raises(StoreWriteError, match="no space"):
        download(other.store, memory, other.cache, filled, retry=prompt)
    monkeypatch.undo()
    assert download(other.store, memory, other.cache, filled, retry=prompt).fetched == filled.keys()


def test_where_there_are_no_locks(
    filled: dict[bytes, str],
    other: Any,
    memory: Any,
    prompt: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: object, seconds: float) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(FileLock, "wait", refuse)
    turn = tmp_path / "fetch.lock"
    report = download(other.store, memory, other.cache, filled, turn=turn, retry=prompt)
    assert report.fetched == filled.keys()


def test_one_that_holds_its_turn_too_long(
    filled: dict[bytes, str],
    other: Any,
    memory: Any,
    prompt: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(downloading, "_PATIENCE", 0.01)
    turn = tmp_path / "fetch.lock"
    holder = FileLock(turn)
    holder.create()
    report = download(other.store, memory, other.cache, filled, turn=turn, retry=prompt)
    holder.release()
    assert report.fetched == filled.keys()
