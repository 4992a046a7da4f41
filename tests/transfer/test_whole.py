"""Packs that are taken over as they are. (That nothing else depends on it, test_download shows.)"""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any

import pytest

from gds_lfs.errors import StoreWriteError, TransientRemoteError
from gds_lfs.remote.base import index_key, pack_key, parse_pack_key
from gds_lfs.store.temp import IncomingPack
from gds_lfs.transfer import whole
from gds_lfs.transfer.download import download
from gds_lfs.transfer.upload import upload

if TYPE_CHECKING:
    from pathlib import Path

CONTENTS = [random.Random(n).randbytes(100_000) for n in range(60)]  # six records, about 6 MB


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MAX_SIZE", 1_500_000)


@pytest.fixture
def filled(clone: Any, memory: Any, prompt: Any) -> dict[bytes, str]:
    """What the remote in memory holds: one pack."""
    wanted: dict[bytes, str] = clone.add(*CONTENTS)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    memory.counted()
    return wanted


def local_packs(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "datasets/packs").rglob("*.pack")}


def test_the_pack_is_the_remotes_own(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, tmp_path: Path, watcher: Any
) -> None:
    report = download(other.store, memory, other.cache, filled, watcher, retry=prompt)
    (key,) = memory.keys("packs/")
    assert local_packs(tmp_path / "two") == {key.rpartition("/")[2]: memory.objects[key]}
    assert memory.counted()["get_range"] == 4
    assert report.bytes_received == len(memory.objects[key])
    assert report.fetched == filled.keys()
    assert watcher.sums == list(watcher.totals[-1][1:])
    assert other.holds(*CONTENTS)
    assert list((tmp_path / "two/datasets/tmp").iterdir()) == []


@pytest.mark.parametrize(("size", "requests"), [(5_900_000, 1), (4_100_000, 1), (2_950_000, 2)])
def test_the_last_part_is_as_large_as_the_others(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, monkeypatch: Any, size: int, requests: int
) -> None:
    monkeypatch.setattr(whole, "MAX_SIZE", size)
    download(other.store, memory, other.cache, filled, retry=prompt)
    assert memory.counted()["get_range"] == requests
    assert other.holds(*CONTENTS)


def test_a_pack_of_which_much_is_not_wanted_is_not(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any
) -> None:
    half = dict(list(filled.items())[:30])
    report = download(other.store, memory, other.cache, half, retry=prompt)
    assert report.fetched == half.keys()
    assert report.bytes_received < 4_200_000


def test_a_small_pack_is_gathered_with_others(clone: Any, other: Any, memory: Any, prompt: Any, tmp_path: Path) -> None:
    wanted: dict[bytes, str] = {}
    for content in CONTENTS[:3]:
        wanted |= clone.add(content)
        upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert len(memory.keys("packs/")) == 3
    download(other.store, memory, other.cache, wanted, retry=prompt)
    assert len(local_packs(tmp_path / "two")) == 1


def test_damage_costs_no_more_than_the_damaged(filled: dict[bytes, str], other: Any, memory: Any, prompt: Any) -> None:
    (key,) = memory.keys("packs/")
    place = memory.objects[key].index(CONTENTS[31])
    memory.damage = lambda name, data: data if name != key else data[:place] + b"\0\0\0\0" + data[place + 4 :]
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert hashlib.sha256(CONTENTS[31]).digest() in report.damaged
    assert len(report.damaged) <= 11  # those that share its record
    assert other.holds(*[c for c in CONTENTS if hashlib.sha256(c).digest() not in report.damaged])


@pytest.mark.parametrize("end", [-1, -12, -40, 4])
def test_a_table_of_contents_that_says_otherwise(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, tmp_path: Path, end: int
) -> None:
    (key,) = memory.keys("packs/")
    pack = bytearray(memory.objects[key])
    pack[end] ^= 1
    memory.objects[key] = bytes(pack)
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert report.fetched == filled.keys()
    assert key.rpartition("/")[2] not in local_packs(tmp_path / "two")
    assert other.holds(*CONTENTS)


def test_a_remote_never_replaces_a_pack_that_is_here(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, tmp_path: Path
) -> None:
    mine = b"only I have this" * 10
    other.add(mine)
    (path,) = (tmp_path / "two/datasets/packs").rglob("*.pack")
    (key,) = memory.keys("packs/")
    stolen = bytes.fromhex(path.stem)
    (index,) = memory.keys("index/")
    lie = memory.objects.pop(index).replace(parse_pack_key(key), stolen)
    memory.objects[index_key(hashlib.sha256(lie).digest())] = lie
    memory.objects[pack_key(stolen)] = memory.objects.pop(key)
    before = path.read_bytes()
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert path.read_bytes() == before
    assert report.fetched == filled.keys()
    assert other.holds(mine, *CONTENTS)


def test_another_pack_under_its_name_is_not_taken(
    filled: dict[bytes, str], clone: Any, other: Any, memory: Any, prompt: Any, tmp_path: Path
) -> None:
    (key,) = memory.keys("packs/")
    right = memory.objects[key]
    foreign = [random.Random(1000 + n).randbytes(100_000) for n in range(60)]
    clone.add(*foreign)
    (wrong,) = [data for name, data in local_packs(tmp_path / "one").items() if foreign[0] in data]
    assert len(wrong) == len(right)
    memory.objects[key] = wrong
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert report.fetched == set()
    assert key.rpartition("/")[2] not in local_packs(tmp_path / "two")
    memory.objects[key] = right
    assert download(other.store, memory, other.cache, filled, retry=prompt).fetched == filled.keys()


def test_what_came_before_the_connection_broke_is_kept(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any
) -> None:
    """Also what came behind the part that did not come."""
    asked = 0

    def fault(name: str, key: str) -> None:
        nonlocal asked
        asked += name == "get_range"
        if name == "get_range" and asked != 3:
            raise TransientRemoteError("gone")

    memory.parallel = 1
    memory.fault = fault
    with pytest.raises(TransientRemoteError):
        download(other.store, memory, other.cache, filled, retry=type(prompt)(attempts=2, sleep=lambda _: None))
    memory.fault = lambda name, key: None
    report = download(other.store, memory, other.cache, filled, retry=prompt)
    assert 0 < len(report.fetched) < 60
    assert other.holds(*CONTENTS)


def test_a_full_disk(
    filled: dict[bytes, str], other: Any, memory: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: IncomingPack, offset: int, data: memoryview) -> None:
        raise StoreWriteError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(IncomingPack, "write", full)
        with pytest.raises(StoreWriteError, match="no space"):
            download(other.store, memory, other.cache, filled, retry=prompt)
    assert download(other.store, memory, other.cache, filled, retry=prompt).fetched == filled.keys()
