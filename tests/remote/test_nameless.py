"""A draft in the folder itself, and what there is where that cannot be had."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gds_lfs.errors import RemoteError
from gds_lfs.remote.directory import DirectoryRemote
from gds_lfs.remote.draft import Draft, Spooled
from gds_lfs.remote.nameless import Nameless

KEY = "packs/ab/" + "ab" * 32 + ".pack"


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nameless files are Linux's")


@pytest.fixture
def remote() -> Iterator[DirectoryRemote]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # a file system that is known to have it
        made = DirectoryRemote(Path(folder) / "data")
        made.create()
        yield made


@pytest.fixture
def draft(remote: DirectoryRemote, tmp_path: Path) -> Draft:
    draft = remote.draft(tmp_path)
    assert isinstance(draft, Nameless)
    return draft


def fail(code: int) -> object:
    def call(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return call


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_has_no_name_before_it_is_put(
    remote: DirectoryRemote, draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "put", fail(errno.EIO))  # nothing is copied
    draft.write(b"0123")
    draft.write(memoryview(b"456789")[1:])
    assert list(remote.root.rglob("*")) == []
    draft.put(KEY)
    draft.close()
    assert files(remote.root) == {KEY: b"012356789"}


def test_colleagues_may_read_it(remote: DirectoryRemote, tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        with contextlib.closing(remote.draft(tmp_path)) as draft:
            draft.put(KEY)
    finally:
        os.umask(before)
    assert (remote.root / KEY).stat().st_mode & 0o777 == 0o664


def test_a_folder_that_makes_no_links_gets_a_copy(
    remote: DirectoryRemote, draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft.write(b"x" * 3_000_000)
    monkeypatch.setattr(os, "link", fail(errno.EXDEV))
    draft.put(KEY)
    draft.close()
    assert files(remote.root) == {KEY: b"x" * 3_000_000}


@pytest.mark.parametrize("name", ["write", "fsync"])
def test_a_disk_that_is_full(remote: DirectoryRemote, draft: Draft, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def send() -> None:
        draft.write(b"123")
        draft.put(KEY)

    monkeypatch.setattr(os, name, fail(errno.ENOSPC))
    with contextlib.closing(draft), pytest.raises(RemoteError, match="cannot write a pack: the disk or quota"):
        send()
    assert files(remote.root) == {}


def test_a_drive_that_goes_away(remote: DirectoryRemote, draft: Draft) -> None:
    draft.write(b"123")
    elsewhere = remote.root.rename(remote.root.parent / "elsewhere")
    with contextlib.closing(draft), pytest.raises(RemoteError, match="is not there: is the drive mounted"):
        draft.put(KEY)
    assert not remote.root.exists()
    assert files(elsewhere) == {}


def test_a_file_system_without_it(remote: DirectoryRemote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", fail(errno.EOPNOTSUPP))
    draft = remote.draft(tmp_path)
    monkeypatch.undo()
    assert isinstance(draft, Spooled)
    with contextlib.closing(draft):
        draft.write(b"123")
        draft.put(KEY)
    assert files(remote.root) == {KEY: b"123"}


def test_closing_gives_the_descriptor_back_once(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    close = os.close

    def refuse(descriptor: int) -> None:
        closed.append(descriptor)
        close(descriptor)
        raise OSError(errno.EDQUOT, "Quota exceeded")

    monkeypatch.setattr(os, "close", refuse)
    draft.close()
    draft.close()
    assert len(closed) == 1
