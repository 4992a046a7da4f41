from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote.base import NoSuchKeyError
from gds_lfs.remote.directory import LEFTOVER_AGE, DirectoryRemote


@pytest.fixture
def remote(tmp_path: Path) -> DirectoryRemote:
    made = DirectoryRemote(tmp_path / "nas" / "data")
    (tmp_path / "nas").mkdir()
    made.create()
    return made


def test_only_the_last_folder_is_made(tmp_path: Path) -> None:
    remote = DirectoryRemote(tmp_path / "nas" / "data")
    with pytest.raises(RemoteError, match=r"nas does not exist; is the drive mounted\?"):
        remote.create()
    assert not (tmp_path / "nas").exists()


def test_a_file_is_no_remote(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    with pytest.raises(RemoteError, match="is a file"):
        DirectoryRemote(tmp_path / "data").create()


def test_an_absent_folder_is_not_an_empty_one(tmp_path: Path) -> None:
    remote = DirectoryRemote(tmp_path / "data")
    for ask in (
        lambda: list(remote.list("index/")),
        lambda: remote.get("a"),
        lambda: remote.get_range("a", 0, 1),
    ):
        with pytest.raises(RemoteError, match="is not there: is the drive mounted") as caught:
            ask()
        assert not isinstance(caught.value, NoSuchKeyError)
    with pytest.raises(RemoteError, match="is not there"):
        remote.put("a", b"1")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "disk or quota there is full"),
        (errno.EDQUOT, "disk or quota there is full"),
        (errno.EFBIG, "disk or quota there is full"),
        (errno.EACCES, "no permission to write index/a"),
        (errno.EROFS, "mounted read-only"),
        (errno.EIO, "cannot write index/a: "),
        (errno.ESTALE, "cannot write index/a: "),
    ],
)
def test_why_a_write_failed(remote: DirectoryRemote, monkeypatch: pytest.MonkeyPatch, code: int, words: str) -> None:
    def fsync(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(RemoteError, match=words) as caught:
        remote.put("index/a", b"1")
    assert remote.url in str(caught.value)
    assert not isinstance(caught.value, TransientRemoteError)
    assert [path for path in remote.root.rglob("*") if path.is_file()] == []


def test_why_a_read_failed(remote: DirectoryRemote, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.put("index/a", b"1")

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(RemoteError, match="no permission to read index/a"):
        remote.get("index/a")


def test_where_objects_are(remote: DirectoryRemote) -> None:
    remote.put("packs/ab/abc.pack", b"123")
    assert (remote.root / "packs" / "ab" / "abc.pack").read_bytes() == b"123"
    assert list((remote.root / "tmp").iterdir()) == []


def test_colleagues_may_read(remote: DirectoryRemote) -> None:
    before = os.umask(0o002)
    try:
        remote.put("packs/ab/x", b"1")
    finally:
        os.umask(before)
    assert (remote.root / "packs/ab/x").stat().st_mode & 0o777 == 0o664
    assert (remote.root / "packs/ab").stat().st_mode & 0o777 == 0o775


def test_only_old_leftovers_are_swept(remote: DirectoryRemote) -> None:
    (remote.root / "tmp").mkdir()
    old, young = remote.root / "tmp" / "old", remote.root / "tmp" / "young"
    for path, age in ((old, LEFTOVER_AGE + 60), (young, LEFTOVER_AGE - 3600)):
        path.write_bytes(b"x")
        os.utime(path, (time.time() - age,) * 2)
    remote.put("index/a", b"1")
    assert not old.exists()
    assert young.exists()
    assert [key for key, _ in remote.list("")] == ["index/a"]


def test_foreign_things_do_not_break_a_listing(remote: DirectoryRemote) -> None:
    remote.put("index/a", b"1")
    (remote.root / "index" / "dangling").symlink_to("nowhere")
    (remote.root / "index" / "loop").symlink_to(remote.root, target_is_directory=True)
    (remote.root / "packs").write_text("a file where a folder belongs")
    assert "index/a" in [key for key, _ in remote.list("index/")]
    assert list(remote.list("packs/")) == []
    assert remote.size("packs/ab/x") is None


def test_old_things_behind_a_link_are_not_swept(remote: DirectoryRemote, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    old = tmp_path / "elsewhere" / "old"
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    (remote.root / "tmp").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    remote.put("index/a", b"1")
    assert old.exists()


def test_a_disk_that_takes_an_object_bit_by_bit(remote: DirectoryRemote, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    remote.put("index/a", b"0123456789")
    assert remote.get("index/a") == b"0123456789"
