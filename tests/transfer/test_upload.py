from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any

import pytest

from gds_lfs.errors import CorruptObjectError, MissingObjectError, RemoteError, TransientRemoteError
from gds_lfs.remote.base import FORMAT_KEY, encode_format
from gds_lfs.remote.shard import Shard
from gds_lfs.store import pack
from gds_lfs.transfer import consolidate, packing
from gds_lfs.transfer.download import download
from gds_lfs.transfer.upload import UploadReport, upload

if TYPE_CHECKING:
    from pathlib import Path

LARGE = random.Random(1).randbytes(900_000)
SMALL = [random.Random(1000 + n).randbytes(3000 + n) for n in range(40)]


def oid(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def shards(remote: Any) -> list[Shard]:
    return [Shard(remote.objects[key]) for key in remote.keys("index/")]


def records(remote: Any) -> list[pack.Record]:
    """All records of all packs on the remote, after a check that each pack is what its name says."""
    found = []
    for key in remote.keys("packs/"):
        data = remote.objects[key]
        assert hashlib.sha256(data).hexdigest() in key
        for entry in pack.decode_footer(data[-pack.footer_size(data) :]):
            record = pack.decode_record(data[entry.offset : entry.offset + entry.header.record_size])
            if record.header.encoding != pack.ZSTD_DICT:
                pack.unpack(record, lambda _: b"")
            found.append(record)
    return found


def members(remote: Any, kind: int) -> set[bytes]:
    return {oid for each in records(remote) if each.header.kind == kind for oid, _ in each.header.members}


def assert_consistent(remote: Any) -> None:
    """Every place in the index holds what it says, and every manifest's chunks are there."""
    known: dict[int, set[bytes]] = {pack.CHUNKS: set(), pack.MANIFESTS: set()}
    for shard in shards(remote):
        for item in shard.items():
            data = remote.objects[f"packs/{item.place.pack.hex()[:2]}/{item.place.pack.hex()}.pack"]
            record = pack.decode_record(data[item.place.offset : item.place.offset + item.place.length])
            assert record.header.kind == item.kind
            assert item.id in dict(record.header.members)
            known[item.kind].add(item.id)
    from gds_lfs.content.manifest import decode

    for record in records(remote):
        if record.header.kind == pack.MANIFESTS:
            for file, data in pack.unpack(record, lambda _: b""):
                assert {chunk for chunk, _ in decode(file, data).chunks} <= known[pack.CHUNKS]


def test_round_trip(clone: Any, other: Any, remote: Any, prompt: Any) -> None:
    wanted = clone.add(LARGE, *SMALL)
    remote.create()
    report = upload(clone.store, remote, clone.cache, wanted, retry=prompt)
    assert report.files == 41
    assert report.packs == 1
    assert report.bytes_sent > 900_000
    fetched = download(other.store, remote, other.cache, wanted, retry=prompt)
    assert fetched.fetched == wanted.keys()
    assert fetched.missing == fetched.damaged == {}
    assert other.holds(LARGE, *SMALL)


def test_what_is_on_the_remote(clone: Any, memory: Any, prompt: Any) -> None:
    upload(clone.store, memory, clone.cache, clone.add(LARGE, *SMALL), retry=prompt)
    assert memory.objects[FORMAT_KEY] == encode_format()
    assert len(memory.keys("index/")) == 1
    assert members(memory, pack.MANIFESTS) == {oid(LARGE)}
    assert {oid(data) for data in SMALL} < members(memory, pack.CHUNKS)
    assert_consistent(memory)


def test_the_shard_comes_last(clone: Any, memory: Any, prompt: Any) -> None:
    upload(clone.store, memory, clone.cache, clone.add(LARGE), retry=prompt)
    puts = [key.partition("/")[0] for name, key in memory.requests if name == "put"]
    assert puts == [FORMAT_KEY, "packs", "index"]


def test_nothing_new_costs_two_listings(clone: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(LARGE, *SMALL)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    memory.counted()
    assert upload(clone.store, memory, clone.cache, wanted, retry=prompt) == UploadReport()
    assert memory.counted() == {"list": 2}


def test_nothing_wanted_costs_nothing(clone: Any, memory: Any, prompt: Any) -> None:
    empty = {oid(b""): "empty"}
    assert upload(clone.store, memory, clone.cache, {}, retry=prompt) == UploadReport()
    assert upload(clone.store, memory, clone.cache, empty, retry=prompt) == UploadReport()
    assert memory.requests == []


def test_only_what_is_new_is_sent(clone: Any, memory: Any, prompt: Any) -> None:
    upload(clone.store, memory, clone.cache, clone.add(LARGE), retry=prompt)
    edited = LARGE[:400_000] + b"edit" + LARGE[400_000:]
    report = upload(clone.store, memory, clone.cache, clone.add(LARGE, edited), retry=prompt)
    assert report.files == 1
    assert 1 <= report.chunks <= 3
    assert report.bytes_sent < 500_000
    assert_consistent(memory)


def test_what_is_not_wanted_never_leaves(clone: Any, memory: Any, prompt: Any) -> None:
    clone.add(*SMALL)  # one frame
    wanted = {oid(data): f"{n}" for n, data in enumerate(SMALL) if n % 2}
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert members(memory, pack.CHUNKS) == wanted.keys()
    everything = b"".join(b for each in records(memory) for _, b in pack.unpack(each, lambda _: b""))
    assert SMALL[0] not in everything
    assert SMALL[1] in everything


def test_single_records_are_gathered(clone: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(*SMALL, framed=False)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert len(records(memory)) == 1


def test_a_full_frame_goes_as_it_is(clone: Any, memory: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = clone.add(*[random.Random(n).randbytes(100_000) for n in range(10)])
    monkeypatch.setattr(packing, "make_record", lambda *_: pytest.fail("cut anew"))
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert members(memory, pack.CHUNKS) == wanted.keys()


def test_many_packs(clone: Any, other: Any, memory: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PACK_SIZE", 200_000)
    wanted = clone.add(LARGE, *SMALL, framed=False)
    report = upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert report.packs > 1
    assert_consistent(memory)
    download(other.store, memory, other.cache, wanted, retry=prompt)
    assert other.holds(LARGE, *SMALL)


def test_an_object_that_is_nowhere_stops_it(clone: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(*SMALL)
    lost = {oid(bytes([n])): f"field/{n}.png" for n in range(5)}
    with pytest.raises(MissingObjectError) as caught:
        upload(clone.store, memory, clone.cache, wanted | lost, retry=prompt)
    assert f"field/0.png (sha256:{oid(bytes(1)).hex()})" in str(caught.value)
    assert "and 2 more" in str(caught.value)
    assert caught.value.oid == oid(bytes(1))
    assert memory.objects == {}


def test_an_object_that_is_only_on_the_remote_is_no_trouble(clone: Any, other: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(LARGE, *SMALL)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    new = other.add(b"new")
    report = upload(other.store, memory, other.cache, wanted | new, retry=prompt)
    assert report.files == 1


def test_a_large_file_with_a_chunk_missing_here(clone: Any, other: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(LARGE)
    manifest = clone.store.manifest(oid(LARGE))
    with other.store.writer(framed=False) as writer:
        record = pack.make_record(pack.MANIFESTS, [(oid(LARGE), manifest.encode())])
        writer.add_record(record)
    with pytest.raises(MissingObjectError, match=f"data/00000.bin.*{oid(LARGE).hex()}"):
        upload(other.store, memory, other.cache, wanted, retry=prompt)
    assert memory.objects == {}
    # Once the chunks are on the remote, its manifest is all that is needed.
    chunks = {chunk: "chunk" for chunk, _ in manifest.chunks}
    upload(clone.store, memory, clone.cache, chunks, retry=prompt)
    report = upload(other.store, memory, other.cache, wanted, retry=prompt)
    assert (report.files, report.chunks) == (1, 0)
    assert_consistent(memory)


def damage_packs(root: Path, inside: bytes) -> None:
    for path in root.rglob("*.pack"):
        data = path.read_bytes()
        at = data.find(inside)
        if at >= 0:
            path.chmod(0o644)
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


@pytest.mark.parametrize("where", ["payload", "header"])
def test_a_damaged_object_is_named_and_never_indexed(
    clone: Any, memory: Any, prompt: Any, tmp_path: Path, where: str
) -> None:
    bad = random.Random(9).randbytes(100_000)
    clone.add(SMALL[0])
    clone.add(bad)
    wanted = {oid(SMALL[0]): "good.bin", oid(bad): "image/bad.png"}
    damage_packs(tmp_path, bad[5000:5100] if where == "payload" else b"GDSR\x01\x00\x01" + bytes(3) + b"\xa0\x86\x01")
    clone.store.close()
    with pytest.raises(CorruptObjectError, match=r"image/bad\.png") as caught:
        upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert caught.value.oid == oid(bad)
    assert memory.keys("index/") == []
    # The way out that the message names works.
    clone.add(bad)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert_consistent(memory)


def test_an_interrupted_upload_goes_on_where_it_was(
    clone: Any, memory: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PACK_SIZE", 100_000)
    wanted = clone.add(LARGE, *SMALL, framed=False)

    def fault(name: str, key: str) -> None:
        if name == "put" and len(memory.keys("packs/")) >= 3:
            raise RemoteError("pulled the plug")

    memory.fault = fault
    with pytest.raises(RemoteError, match="plug"):
        upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    there = memory.keys("packs/")
    assert len(there) >= 3
    assert memory.keys("index/") == []
    memory.fault = lambda name, key: None
    memory.counted()
    report = upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    puts = [key for name, key in memory.requests if name == "put"]
    assert not set(there) & set(puts)
    assert len(memory.requests) == 2 + 1 + len(puts)  # two lists, the format
    assert report.packs == len(memory.keys("packs/"))
    assert_consistent(memory)


def test_failures_for_a_moment_and_progress(
    clone: Any, memory: Any, prompt: Any, watcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PACK_SIZE", 100_000)
    wanted = clone.add(LARGE, *SMALL, framed=False)
    failed: set[str] = set()

    def fault(name: str, key: str) -> None:
        if (name + key) not in failed:
            failed.add(name + key)
            raise TransientRemoteError("503")

    memory.fault = fault
    report = upload(clone.store, memory, clone.cache, wanted, watcher, retry=prompt)
    assert_consistent(memory)
    assert watcher.totals == [("Uploading", 900_000 + sum(map(len, SMALL)), 41)]
    assert watcher.sums == list(watcher.totals[0][1:])
    assert watcher.ended == 1
    assert report.bytes_sent == sum(len(data) for key, data in memory.objects.items() if key != FORMAT_KEY)


def test_a_remote_that_lost_its_packs_gets_them_again(clone: Any, other: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(LARGE, *SMALL)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    for key in memory.keys("packs/"):
        memory.objects.pop(key)
    report = upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert report.files == 41
    download(other.store, memory, other.cache, wanted, retry=prompt)
    assert other.holds(LARGE, *SMALL)


def test_a_wiped_remote_gets_everything_again(clone: Any, other: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(LARGE, *SMALL)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    memory.objects.clear()
    assert upload(clone.store, memory, clone.cache, wanted, retry=prompt).files == 41
    download(other.store, memory, other.cache, wanted, retry=prompt)
    assert other.holds(LARGE, *SMALL)


def test_a_remote_that_was_begun_is_not_begun_anew(clone: Any, remote: Any, prompt: Any) -> None:
    """An empty folder may be a drive that is not mounted."""
    wanted = clone.add(LARGE, *SMALL)
    with pytest.raises(RemoteError, match=r"(?s)is empty, and this clone's data has been there: is the.*\nadvice"):
        upload(clone.store, remote, clone.cache, wanted, retry=prompt, begin_anew="advice")
    remote.create()
    assert list(remote.list("")) == []
    remote.put(FORMAT_KEY, encode_format())
    assert upload(clone.store, remote, clone.cache, wanted, retry=prompt, begin_anew="advice").files == 41


def test_lost_chunks_of_a_large_file_come_again(
    clone: Any, other: Any, memory: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PACK_SIZE", 100_000)
    large = random.Random(5).randbytes(4_000_000)
    wanted = clone.add(large)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    lost = next(
        key for key in memory.keys("packs/") if b"GDSM" not in memory.objects[key]
        and len(memory.objects[key]) > 50_000
    )  # fmt: skip
    memory.objects.pop(lost)
    report = upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    assert report.files == 1
    assert 0 < report.chunks < len(clone.store.manifest(oid(large)).chunks)
    download(other.store, memory, other.cache, wanted, retry=prompt)
    assert other.holds(large)


def test_a_newer_remote_is_left_alone(clone: Any, memory: Any, prompt: Any) -> None:
    memory.put(FORMAT_KEY, encode_format().replace(b"1", b"2"))
    with pytest.raises(RemoteError, match="upgrade"):
        upload(clone.store, memory, clone.cache, clone.add(LARGE), retry=prompt)
    assert list(memory.objects) == [FORMAT_KEY]


@pytest.fixture
def few_shards(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(consolidate, "MAX_SHARDS", 5)
    return 5


def test_many_pushes_leave_few_shards(clone: Any, other: Any, memory: Any, prompt: Any, few_shards: int) -> None:
    contents = [b"push %d" % n for n in range(few_shards + 4)]
    counts = []
    for data in contents:
        upload(clone.store, memory, clone.cache, clone.add(data), retry=prompt)
        counts.append(len(memory.keys("index/")))
    assert counts == [1, 2, 3, 4, 5, 6, 1, 2, 3]
    wanted = {oid(data): "x" for data in contents}
    assert download(other.store, memory, other.cache, wanted, retry=prompt).fetched == wanted.keys()
    assert_consistent(memory)


def test_one_who_may_not_delete_can_still_push(clone: Any, memory: Any, prompt: Any, few_shards: int) -> None:
    def fault(name: str, key: str) -> None:
        if name == "delete":
            raise RemoteError("no permission")

    memory.fault = fault
    for n in range(few_shards + 3):
        assert upload(clone.store, memory, clone.cache, clone.add(b"push %d" % n), retry=prompt).files == 1
    assert_consistent(memory)


def test_scratch_space_is_given_back(clone: Any, memory: Any, prompt: Any) -> None:
    upload(clone.store, memory, clone.cache, clone.add(LARGE), retry=prompt)
    assert [path.name for path in clone.cache.iterdir() if path.is_file()] == []


def dictionary_record(data: bytes, base: bytes) -> pack.Record:
    import zstandard

    dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    payload = zstandard.ZstdCompressor(level=3, dict_data=dictionary).compress(data)
    header = pack.Header(pack.CHUNKS, pack.ZSTD_DICT, ((oid(data), len(data)),), len(data), len(payload), oid(base), 0)
    return pack.Record(header, payload)


def test_a_delta_goes_as_it_is_only_with_its_base(clone: Any, other: Any, memory: Any, prompt: Any) -> None:
    base = random.Random(3).randbytes(100_000)
    data = base[:50_000] + b"changed" + base[50_000:]
    clone.add(base)
    with clone.store.writer(framed=False) as writer:
        writer.add_record(dictionary_record(data, base))
    upload(clone.store, memory, clone.cache, {oid(data): "data"}, retry=prompt)
    assert [each.header.encoding for each in records(memory)] == [pack.RAW]
    assert members(memory, pack.CHUNKS) == {oid(data)}

    memory.objects.clear()
    upload(clone.store, memory, clone.cache, {oid(base): "a", oid(data): "b"}, retry=prompt)
    assert pack.ZSTD_DICT in {each.header.encoding for each in records(memory)}
    memory.objects.clear()
    upload(clone.store, memory, clone.cache, {oid(base): "a"}, retry=prompt)
    upload(clone.store, memory, clone.cache, {oid(data): "b"}, retry=prompt)
    assert sorted(each.header.encoding for each in records(memory)) == [pack.RAW, pack.ZSTD_DICT]
    assert {item.id: item.place.base for shard in shards(memory) for item in shard.items()} == {
        oid(base): b"",
        oid(data): oid(base),
    }
    fetched = download(other.store, memory, other.cache, {oid(data): "data"}, retry=prompt)
    assert fetched.fetched == {oid(data)}
    assert other.holds(data)
