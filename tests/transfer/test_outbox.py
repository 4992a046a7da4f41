from __future__ import annotations

import contextlib
import hashlib
import io
import os
import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from gds_lfs.content import chunker
from gds_lfs.content.hashing import EMPTY, oid_of
from gds_lfs.errors import CorruptObjectError, GitDatasetsError, MissingObjectError, RemoteError, StoreWriteError
from gds_lfs.remote.base import SlowDownError
from gds_lfs.remote.draft import Spooled
from gds_lfs.store import pack
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer.download import download
from gds_lfs.transfer.inbox import Inbox
from gds_lfs.transfer.outbox import Outbox
from gds_lfs.transfer.packing import PackFile
from gds_lfs.transfer.upload import upload

from .conftest import PROMPT, MemoryRemote


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


class Files:
    """Files with known content, and the outbox they go into."""

    def __init__(self, folder: Path, remote: MemoryRemote) -> None:
        self.folder = folder
        self.remote = remote
        self.steps: list[int] = []
        self.outbox = self.another()

    def another(self) -> Outbox:
        return Outbox(self.remote, self.folder / "cache", self.folder, PROMPT)

    def add(self, content: bytes, oid: bytes | None = None) -> bool:
        oid = oid or oid_of(content)
        path = self.folder / oid.hex()
        path.write_bytes(content)
        return self.outbox.add(oid, len(content), str(path), self.steps.append)

    def read_back(self, *contents: bytes) -> None:
        store = LocalStore(self.folder / f"store-{os.urandom(4).hex()}")
        wanted = {oid_of(content): "a file" for content in contents}
        assert not download(store, self.remote, self.folder / "cache-2", wanted, retry=PROMPT).missing
        assert [store.read(oid_of(content)) for content in contents] == list(contents)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    files = Files(tmp_path, MemoryRemote())
    yield files
    files.outbox.close()


def test_small_files_travel_in_one_pack(files: Files) -> None:
    contents = [noise(1000, seed) for seed in range(50)]
    assert all(files.add(content) for content in contents)
    assert files.remote.keys("packs/") == []
    files.outbox.flush()
    assert len(files.remote.keys("packs/")) == 1
    assert len(files.remote.keys("index/")) == 1
    files.read_back(*contents)


def test_packs_come_before_the_shard(files: Files) -> None:
    files.add(noise(500_000))
    files.outbox.flush()
    puts = [key.split("/")[0] for name, key in files.remote.requests if name == "put"]
    assert puts == ["git-datasets.json", "packs", "index"]


def test_a_large_file_is_chunked_and_its_next_version_costs_its_changes(files: Files) -> None:
    content = noise(8_000_000)
    files.add(content)
    files.outbox.flush()
    before = files.outbox.bytes_sent
    changed = content[:3_000_000] + b"a hundred bytes more" * 5 + content[3_000_000:]
    assert files.add(changed)
    files.outbox.flush()
    assert files.outbox.bytes_sent - before < 600_000
    files.read_back(content, changed)


def test_what_is_there_is_not_sent_again(files: Files) -> None:
    contents = [noise(1000), noise(700_000, 2)]
    for content in contents:
        files.add(content)
    files.outbox.flush()
    assert [files.add(content) for content in contents] == [False, False]
    files.outbox.close()
    files.outbox = files.another()
    assert [files.add(content) for content in contents] == [False, False]
    files.outbox.flush()
    assert len(files.remote.keys("packs/")) == len(files.remote.keys("index/")) == 1


def test_the_same_object_twice_before_it_is_sent(files: Files) -> None:
    assert files.add(noise(1000))
    assert files.add(noise(1000)), "it is not on the remote yet: someone has to vouch for it"
    files.outbox.flush()
    files.read_back(noise(1000))


def test_what_our_own_push_sent_is_there_and_the_other_way_round(files: Files, tmp_path: Path) -> None:
    contents = [noise(1000), noise(3_000_000, 2)]
    store = LocalStore(tmp_path / "store")
    with store.writer(framed=True) as writer:
        pointers = [writer.add_bytes(content) for content in contents]
    upload(store, files.remote, tmp_path / "cache", {p.oid: "a file" for p in pointers}, retry=PROMPT)
    objects = dict(files.remote.objects)
    assert [files.add(content) for content in contents] == [False, False]
    assert files.remote.objects == objects

    files.add(noise(2_000_000, 3))
    files.outbox.flush()
    with store.writer(framed=True) as writer:
        pointer = writer.add_bytes(noise(2_000_000, 3))
    report = upload(store, files.remote, tmp_path / "cache", {pointer.oid: "a file"}, retry=PROMPT)
    assert report.files == 0


def test_an_empty_file_needs_nothing(files: Files) -> None:
    assert files.outbox.add(EMPTY, 0, "/nowhere", files.steps.append) is False
    assert files.remote.objects == {}


def test_a_large_file_that_is_not_what_it_is_named_for(files: Files) -> None:
    with pytest.raises(CorruptObjectError, match="is not the object"):
        files.add(noise(500_000), oid_of(b"another"))
    with pytest.raises(MissingObjectError, match="/nowhere"):
        files.outbox.add(oid_of(b"x"), 500_000, "/nowhere", files.steps.append)
    files.add(noise(2000, 2))
    files.outbox.flush()
    files.read_back(noise(2000, 2))


def test_small_files_are_read_when_there_is_time(files: Files) -> None:
    contents = [noise(1000, seed) for seed in range(3)]
    for content in contents:
        files.add(content)
    assert files.outbox.size == 3000
    assert [files.outbox.work() for _ in range(4)] == [True, True, True, False]
    for content in contents:
        (files.folder / oid_of(content).hex()).unlink()
    files.outbox.flush()
    files.read_back(*contents)


def test_a_small_file_that_is_gone_fails_every_flush_from_then_on(files: Files) -> None:
    """Its `complete` was given, and git-lfs asks again only for the one that is held."""
    assert files.outbox.add(oid_of(b"x"), 1, "/nowhere", files.steps.append)
    files.add(noise(2000, 2))
    for _ in range(2):
        with pytest.raises(MissingObjectError, match="/nowhere"):
            files.outbox.flush()
    files.read_back(noise(2000, 2))  # what could be sent was
    assert files.outbox.add(oid_of(b"y"), 1, "/neither", files.steps.append)
    with pytest.raises(MissingObjectError, match=r"/nowhere is gone.*\(and 1 more\)"):
        files.outbox.flush()
    assert not files.outbox.add(oid_of(noise(2000, 2)), 2000, "/nowhere", files.steps.append)
    assert files.outbox.add(oid_of(b"x"), 1, "/nowhere", files.steps.append), "not taken for sent"


def test_a_small_file_that_is_another_fails_the_flush(files: Files) -> None:
    files.add(noise(1000), oid_of(b"another"))
    assert files.outbox.work()
    with pytest.raises(CorruptObjectError, match="is not the object"):
        files.outbox.flush()
    assert files.remote.keys("packs/") == []


def test_a_large_file_does_not_count_on_a_small_one_that_is_still_to_be_read(files: Files) -> None:
    large = noise(300_000)
    first = next(iter(chunker.split(io.BytesIO(large).read)))
    assert len(first) <= chunker.SMALL, "the case"
    files.add(first)
    (files.folder / oid_of(first).hex()).unlink()
    files.add(large)
    files.outbox.flush()
    files.read_back(large)


def test_a_remote_that_is_down_is_not_asked_for_every_file(files: Files) -> None:
    def fault(name: str, key: str) -> None:
        raise RemoteError("down")

    files.remote.fault = fault
    for seed in range(5):
        with pytest.raises(RemoteError, match="down"):
            files.add(noise(1000, seed))
    assert len(files.remote.requests) == 1


def test_after_a_failed_flush_nothing_is_vouched_for(files: Files) -> None:
    def fault(name: str, key: str) -> None:
        if name == "put" and key.startswith("packs/"):
            raise RemoteError("full")

    files.add(noise(1000))
    files.remote.fault = fault
    for _ in range(2):
        with pytest.raises(RemoteError, match="full"):
            files.outbox.flush()
    with pytest.raises(RemoteError, match="full"):
        files.add(noise(1000, 2))
    assert files.remote.keys("index/") == []


def test_a_full_scratch_disk_never_becomes_a_bad_pack(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.add(noise(1000))

    def add(self: PackFile, record: object) -> None:
        raise StoreWriteError("full")

    monkeypatch.setattr(PackFile, "add", add)
    with pytest.raises(GitDatasetsError, match="full"):
        files.add(noise(3_000_000))
    with pytest.raises(GitDatasetsError, match="full"):
        files.outbox.flush()
    assert files.remote.keys("packs/") == []


@pytest.mark.parametrize("function", ["make_record", "PackFile.add"])
def test_whatever_goes_wrong_while_files_are_read_fails_every_flush(
    files: Files, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    for seed in range(60):
        files.add(noise(10_000, seed))

    def fail(*_: object) -> None:
        raise MemoryError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(f"gds_lfs.transfer.packing.{function}", fail)
        deque(iter(files.outbox.work, False), maxlen=0)
    for _ in range(2):
        with pytest.raises(MemoryError):
            files.outbox.flush()
    with pytest.raises(MemoryError):
        files.add(noise(10_000, 1))
    assert files.remote.keys("index/") == []


def test_a_pipe_in_place_of_a_file_is_waited_for_by_nobody(files: Files) -> None:
    for size in (1000, 1_000_000):
        pipe = files.folder / f"pipe-{size}"
        os.mkfifo(pipe)
        outbox = files.another()
        with contextlib.closing(outbox), contextlib.suppress(CorruptObjectError):
            outbox.add(oid_of(noise(size)), size, str(pipe), files.steps.append)
            with pytest.raises(CorruptObjectError):
                outbox.flush()
        assert files.remote.keys("index/") == []


def test_many_batches_leave_few_shards(files: Files) -> None:
    contents = [noise(100, seed) for seed in range(70)]
    for content in contents:
        files.add(content)
        files.outbox.flush()
    assert len(files.remote.keys("index/")) < 10
    files.outbox.close()
    assert len(files.remote.keys("index/")) == 1
    files.read_back(*contents)


def test_progress_of_a_large_file(files: Files) -> None:
    files.add(noise(20_000_000))
    assert files.steps == sorted(files.steps)
    assert len(files.steps) == 2
    assert files.steps[-1] < 20_000_000


def test_an_inbox_hands_out_files_and_asks_once_for_neighbours(files: Files, tmp_path: Path) -> None:
    contents = [noise(1000, seed) for seed in range(20)] + [noise(900_000, 99)]
    for content in contents:
        files.add(content)
    files.outbox.flush()
    folder = tmp_path / "out"
    folder.mkdir()
    session = LocalStore(tmp_path / "session")
    inbox = Inbox(
        files.remote,
        tmp_path / "cache-3",
        own=LocalStore(tmp_path / "own"),
        session=session,
        folder=folder,
        retry=PROMPT,
    )
    oids = [oid_of(content) for content in contents]
    first = inbox.fetch(oids[:1])[oids[0]]
    assert isinstance(first, Path)
    assert first.read_bytes() == contents[0]
    requests = len(files.remote.requests)
    assert inbox.at_hand(oids[7])
    found = inbox.fetch(oids[:20])
    assert [path.read_bytes() for path in found.values() if isinstance(path, Path)] == contents[:20]
    assert len(files.remote.requests) == requests
    absent = hashlib.sha256(b"nobody has it").digest()
    mixed = inbox.fetch([oids[20], absent])
    assert isinstance(mixed[oids[20]], Path)
    assert isinstance(mixed[absent], MissingObjectError)
    assert not (folder / absent.hex()).exists()
    session.close()


class Watched(Spooled):
    """Drafts that are counted until they are closed."""

    open = 0
    refused = b"nothing begins so"

    def __init__(self, remote: MemoryRemote, scratch: Path) -> None:
        super().__init__(remote, scratch)
        Watched.open += 1
        self._counted = True

    def write(self, data: bytes | memoryview) -> None:
        if bytes(data).startswith(Watched.refused):
            raise StoreWriteError("full")
        super().write(data)

    def close(self) -> None:
        Watched.open -= self._counted
        self._counted = False
        super().close()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    def draft(self: MemoryRemote, scratch: Path) -> Watched:
        return Watched(self, scratch)

    monkeypatch.setattr(MemoryRemote, "draft", draft)
    monkeypatch.setattr(Watched, "open", 0)
    return Watched


@pytest.mark.parametrize("part", [pack.PACK_HEADER, b"GDSF"])
def test_a_pack_that_finds_no_room_is_closed(
    files: Files, watched: type[Watched], monkeypatch: pytest.MonkeyPatch, part: bytes
) -> None:
    files.add(noise(10_000))
    monkeypatch.setattr(Watched, "refused", part)
    with pytest.raises(StoreWriteError, match="full"):
        files.outbox.flush()
    assert watched.open == 0


@pytest.mark.usefixtures("small_packs")
@pytest.mark.parametrize("when", ["first pack fails", "no thread can be started"])
def test_whatever_fails_all_packs_are_closed(
    files: Files, watched: type[Watched], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    if when == "first pack fails":

        def fault(name: str, key: str) -> None:
            if name == "put" and key.startswith("packs/"):
                raise RemoteError("denied")

        files.remote.fault = fault
    else:

        def submit(*_: object) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", submit)

    def push() -> None:
        files.add(noise(2_000_000))
        files.outbox.flush()

    with pytest.raises((RemoteError, RuntimeError), match=r"denied|can't start"):
        push()
    assert watched.open == 0


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gds_lfs.transfer.outbox.PACK_SIZE", 1_000_000)


@pytest.mark.usefixtures("small_packs")
def test_what_an_interrupted_session_sent_is_not_sent_again(files: Files) -> None:
    content = noise(5_000_000)

    def fault(name: str, key: str) -> None:
        if name == "put" and key.startswith("packs/") and len(files.remote.keys("packs/")) == 2:
            raise RemoteError("the connection is gone")

    def push() -> None:
        files.add(content)
        files.outbox.flush()

    files.remote.fault = fault
    with pytest.raises(RemoteError, match="is gone"):
        push()
    files.remote.fault = lambda name, key: None
    there = files.remote.keys("packs/")
    assert len(there) >= 2
    files.remote.requests.clear()
    files.outbox.close()
    files.outbox = files.another()
    push()
    sent = {key for name, key in files.remote.requests if name == "put"}
    assert sent.isdisjoint(there)
    assert len([key for key in sent if key.startswith("packs/")]) == len(files.remote.keys("packs/")) - len(there)
    files.read_back(content)


@pytest.mark.usefixtures("small_packs")
def test_a_server_that_asks_for_fewer_requests_gets_fewer(files: Files) -> None:
    under_way: list[int] = []
    counting = threading.Lock()
    two = threading.Event()
    active = 0

    def fault(name: str, key: str) -> None:
        nonlocal active
        if name != "put" or not key.startswith("packs/"):
            return
        with counting:
            active += 1
            under_way.append(active)
            refused = len(under_way) <= 20
            if active == 2:
                two.set()
        assert two.wait(30), "the case: packs that are sent side by side"
        time.sleep(0.01)
        with counting:
            active -= 1
        if refused:
            raise SlowDownError("please")

    files.remote.fault = fault
    files.add(noise(6_000_000))
    files.outbox.flush()
    assert set(under_way[10:20]) == {1}
