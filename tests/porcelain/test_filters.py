"""The filter's decisions, with a real store and no git."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gds_lfs.content.hashing import oid_of
from gds_lfs.content.pointer import Pointer
from gds_lfs.errors import RemoteError
from gds_lfs.git.filter_process import DELAYED, FilterError, Request
from gds_lfs.porcelain.filters import Filter, read_up_to, rejoin
from gds_lfs.porcelain.messages import Messages
from gds_lfs.remote.directory import DirectoryRemote
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer.download import DownloadReport, download
from gds_lfs.transfer.upload import upload

CLEAN = Request("clean", b"a.bin")


class Workspace:
    """What a filter needs of a repository, with a folder as remote."""

    def __init__(self, root: Path, *, skip_smudge: bool = False) -> None:
        self.store = LocalStore(root / "store")
        self.cache = root / "cache"
        self.data = root / "data"
        self.messages = Messages()
        self.repo = SimpleNamespace(top=None, common_dir=root / "git")
        self.settings = SimpleNamespace(skip_smudge=skip_smudge, get=lambda key: None, subsections=lambda *_: {})
        self.remotes_opened = 0
        self.remote: DirectoryRemote | None = None

    def remote_url(self, source: str | None = None) -> str:
        return str(self.data)

    def remote_address(self, git_remote: str | None = None, source: str | None = None) -> str:
        return str(self.data)

    def git_remote(self) -> str:
        return "origin"

    def named(self, git_remote: str) -> str:
        return git_remote

    def open_remote(self, git_remote: str | None = None, source: str | None = None) -> DirectoryRemote:
        if not self.data.exists():
            self.remotes_opened += 1
            raise RemoteError(f"{self.data} is not there")
        if self.remote is None:
            self.remotes_opened += 1
            self.remote = DirectoryRemote(self.data)
        return self.remote

    def download(self, remote: DirectoryRemote, wanted: dict[bytes, str]) -> DownloadReport:
        return download(self.store, remote, self.cache, wanted)

    def publish(self, root: Path, *contents: bytes) -> None:
        elsewhere = LocalStore(root / "elsewhere")
        with elsewhere.writer(framed=True) as writer:
            for content in contents:
                writer.add_bytes(content)
        upload(elsewhere, DirectoryRemote(self.data), root / "other-cache", {oid_of(c): "x" for c in contents})


def filtered(workspace: Workspace) -> Filter:
    session: Any = Filter(workspace)  # type: ignore[arg-type]
    return session


def pointer(content: bytes) -> Pointer:
    return Pointer(oid_of(content), len(content))


def result(answer: Any) -> bytes:
    return answer if isinstance(answer, bytes) else b"".join(answer)


@pytest.mark.parametrize("size", [1, 5, 1023, 1024, 1025, 200_000])
def test_clean_stores_and_points(tmp_path: Path, size: int) -> None:
    workspace = Workspace(tmp_path)
    session = filtered(workspace)
    content = bytes(i % 251 for i in range(size))
    assert session.clean(CLEAN, io.BytesIO(content).read) == pointer(content).encode()
    session.finish()
    assert workspace.store.read(oid_of(content)) == content


def test_clean_keeps_what_is_a_pointer_or_nothing(tmp_path: Path) -> None:
    session = filtered(Workspace(tmp_path))
    text = pointer(b"data").encode()
    assert session.clean(CLEAN, io.BytesIO(text).read) == text
    assert session.clean(CLEAN, io.BytesIO(text.replace(b"\n", b"\r\n")).read) == text
    assert session.clean(CLEAN, io.BytesIO(b"").read) == b""


def test_clean_refuses_conflict_markers_and_keeps_malformed_text(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    session = filtered(Workspace(tmp_path))
    ours, theirs = pointer(b"ours").encode(), pointer(b"theirs").encode()
    with pytest.raises(FilterError, match=r"a\.bin.*conflict markers"):
        session.clean(CLEAN, io.BytesIO(b"<<<<<<< ours\n" + ours + b"=======\n" + theirs + b">>>>>>> b\n").read)
    assert session.clean(CLEAN, io.BytesIO(ours + b"junk\n").read) == ours + b"junk\n"
    session.finish()
    assert "a.bin" in capfd.readouterr().err


def test_smudge_delays_fetches_once_and_gives_all(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    contents = {b"%d.bin" % i: b"content %d" % i * 50 for i in range(5)}
    workspace.publish(tmp_path, *contents.values())
    session = filtered(workspace)
    for name, content in contents.items():
        assert session.smudge(Request("smudge", name, can_delay=True), pointer(content).encode()) is DELAYED
    assert set(session.available()) == set(contents)
    assert workspace.remotes_opened == 1
    for name, content in contents.items():
        assert result(session.smudge(Request("smudge", name), b"")) == content
    assert session.available() == []


def test_smudge_gives_the_pointer_where_data_is_absent(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    workspace = Workspace(tmp_path)
    session = filtered(workspace)
    texts = {name: pointer(name).encode() for name in (b"a.bin", b"b.bin")}
    for name, text in texts.items():
        assert session.smudge(Request("smudge", name), text) == text
    session.finish()
    err = capfd.readouterr().err
    assert "checked out 2 files as pointers;" in err
    assert err.count("git datasets pull") == 1
    assert "a.bin" in err
    assert "b.bin" in err
    assert workspace.remotes_opened == 1, "a remote that is down is asked once"


def test_smudge_leaves_what_is_no_pointer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = filtered(Workspace(tmp_path))
    assert session.smudge(Request("smudge", b"raw.bin"), b"raw" * 1000) == b"raw" * 1000
    assert session.smudge(Request("smudge", b"empty.bin"), b"") == b""
    assert session.smudge(Request("smudge", b"zero.bin"), pointer(b"").encode()) == b""
    session.finish()
    err = capfd.readouterr().err
    assert "raw.bin" in err
    assert "empty.bin" not in err


def test_one_file_is_a_pointer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = filtered(Workspace(tmp_path))
    session.smudge(Request("smudge", b"a.bin"), pointer(b"a").encode())
    session.finish()
    assert "checked out 1 file as a pointer;" in capfd.readouterr().err


def test_smudge_can_be_skipped(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, skip_smudge=True)
    text = pointer(b"data").encode()
    assert filtered(workspace).smudge(Request("smudge", b"a.bin", can_delay=True), text) == text
    assert workspace.remotes_opened == 0


def test_streams_are_read_ahead_without_loss() -> None:
    stream = io.BytesIO(bytes(range(256)) * 10)
    head = read_up_to(stream.read, 1000)
    assert len(head) == 1000
    joined = rejoin(head, stream.read)
    pieces = []
    while piece := joined(300):
        pieces.append(piece)
    assert b"".join(pieces) == bytes(range(256)) * 10
