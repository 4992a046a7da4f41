"""What every remote promises: tests that a kind of remote runs by importing them beside a fixture `remote`."""

from __future__ import annotations

import contextlib
import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gds_lfs.remote.base import Entry, NoSuchKeyError, Remote, ShortBodyError

KEY = "packs/ab/" + "ab" * 32 + ".pack"


class Cut(io.BytesIO):
    """A source that stops giving bytes half way, as a process does that is interrupted."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() > 0:
            raise KeyboardInterrupt
        return super().read(10)


def test_a_new_remote_is_empty(remote: Remote) -> None:
    assert list(remote.list("")) == []
    assert list(remote.list("index/")) == []


def test_create_keeps_what_is_there(remote: Remote) -> None:
    remote.put("a/b", b"1")
    remote.create()
    assert remote.get("a/b") == b"1"


@pytest.mark.parametrize("data", [b"", b"x", b"0123456789" * 1000])
def test_bytes_come_back(remote: Remote, data: bytes) -> None:
    remote.put(KEY, data)
    assert remote.get(KEY) == data
    assert remote.size(KEY) == len(data)


def test_a_file_is_stored_from_its_start(remote: Remote) -> None:
    data = bytes(range(256)) * 10_000
    file = io.BytesIO(data)
    file.seek(77)
    remote.put(KEY, file)
    assert hashlib.sha256(remote.get(KEY)).digest() == hashlib.sha256(data).digest()


def test_a_file_can_be_sent_twice(remote: Remote) -> None:
    file = io.BytesIO(b"again")
    remote.put("a/1", file)
    remote.put("a/2", file)
    assert remote.get("a/2") == b"again"


def test_an_object_of_the_same_size_is_left_alone(remote: Remote) -> None:
    remote.put(KEY, b"first")
    remote.put(KEY, b"other")
    assert remote.get(KEY) == b"first"


def test_an_object_that_was_cut_short_is_replaced(remote: Remote) -> None:
    remote.put(KEY, b"fir")
    remote.put(KEY, b"first")
    assert remote.get(KEY) == b"first"


def test_absent_keys(remote: Remote) -> None:
    assert remote.size(KEY) is None
    with pytest.raises(NoSuchKeyError, match="ab"):
        remote.get(KEY)
    with pytest.raises(NoSuchKeyError, match="ab"):
        remote.get_range(KEY, 0, 1)


@pytest.mark.parametrize(("offset", "length"), [(0, 10), (3, 4), (9, 1), (0, 1)])
def test_a_range_is_exact(remote: Remote, offset: int, length: int) -> None:
    remote.put(KEY, b"0123456789")
    assert remote.get_range(KEY, offset, length) == b"0123456789"[offset : offset + length]


@pytest.mark.parametrize(("offset", "length"), [(0, 11), (9, 2), (10, 1), (100, 5)])
def test_a_range_past_the_end_is_an_error(remote: Remote, offset: int, length: int) -> None:
    remote.put(KEY, b"0123456789")
    with pytest.raises(ShortBodyError):
        remote.get_range(KEY, offset, length)


def test_list_by_prefix(remote: Remote) -> None:
    for key, size in {"index/a": 1, "index/b": 2, "packs/aa/x": 3, "packs/ab/y": 4, "top": 5}.items():
        remote.put(key, b"." * size)
    assert sorted(remote.list("index/")) == [Entry("index/a", 1), Entry("index/b", 2)]
    assert sorted(remote.list("packs/a")) == [Entry("packs/aa/x", 3), Entry("packs/ab/y", 4)]
    assert sorted(remote.list("packs/ab/")) == [Entry("packs/ab/y", 4)]
    assert [key for key, _ in remote.list("to")] == ["top"]
    assert len(list(remote.list(""))) == 5


def test_delete(remote: Remote) -> None:
    remote.put("index/a", b"1")
    remote.delete("index/a")
    remote.delete("index/a")
    remote.delete("never/was")
    assert list(remote.list("")) == []


def test_an_interrupted_put_leaves_nothing(remote: Remote) -> None:
    with pytest.raises(KeyboardInterrupt):
        remote.put(KEY, Cut(b"x" * 100))
    assert remote.size(KEY) is None
    assert list(remote.list("")) == []


@pytest.mark.parametrize("size", [0, 10, 3_000_000])
def test_a_draft_is_seen_when_it_is_put(remote: Remote, tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with contextlib.closing(remote.draft(tmp_path)) as draft:
        for start in range(0, size, 100_000):
            draft.write(memoryview(data)[start : start + 100_000])
        assert list(remote.list("")) == []
        draft.put(KEY)
    assert remote.get(KEY) == data
    assert list(remote.list("")) == [Entry(KEY, size)]


def test_a_draft_of_what_is_there(remote: Remote, tmp_path: Path) -> None:
    remote.put(KEY, b"first")
    for data, kept in ((b"other", b"first"), (b"longer", b"longer")):
        with contextlib.closing(remote.draft(tmp_path)) as draft:
            draft.write(data)
            draft.put(KEY)
        assert remote.get(KEY) == kept


def test_a_draft_that_is_given_up_leaves_nothing(remote: Remote, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    with contextlib.closing(remote.draft(tmp_path)) as draft:
        draft.write(b"x" * 3_000_000)
    assert list(remote.list("")) == []
    assert {path for path in tmp_path.rglob("*") if path.is_file()} <= before


def test_many_writers_of_one_key(remote: Remote) -> None:
    data = b"z" * 300_000
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: remote.put(KEY, data), range(24)))
    assert remote.get(KEY) == data
    assert [key for key, _ in remote.list("")] == [KEY]
