"""What a draft that is kept here does apart from the contract of all remotes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gds_lfs.errors import StoreWriteError
from gds_lfs.remote.base import open_remote
from gds_lfs.remote.draft import IN_MEMORY, Spooled

if TYPE_CHECKING:
    from gds_lfs.remote.base import Remote


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    made = open_remote("remote", tmp_path)
    made.create()
    return made


def test_a_small_one_needs_no_disk(remote: Remote, tmp_path: Path) -> None:
    draft = Spooled(remote, tmp_path / "nowhere")
    draft.write(b"x" * IN_MEMORY)
    draft.put("a")
    draft.close()
    assert remote.size("a") == IN_MEMORY


def test_a_large_one_has_no_name(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = tempfile.TemporaryFile

    def temporary(**options: object) -> object:
        made.append(options["dir"])
        return real(**options)  # type: ignore[call-overload]

    monkeypatch.setattr(tempfile, "TemporaryFile", temporary)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    draft = Spooled(remote, scratch)
    draft.write(b"x" * IN_MEMORY)
    draft.write(b"yz")
    draft.write(b"more")
    assert made == [scratch]
    assert list(scratch.iterdir()) == []
    for key in ("a", "b"):
        draft.put(key)
    draft.close()
    assert remote.get("b")[IN_MEMORY:] == b"yzmore"


def test_no_room(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreWriteError, match=r"cannot put a pack together in .*nowhere"):
        Spooled(remote, tmp_path / "nowhere").write(b"x" * (IN_MEMORY + 1))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    draft = Spooled(remote, tmp_path)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreWriteError, match="No space left") as kept:
        draft.write(b"x" * (IN_MEMORY + 1))
    draft.close()  # while the error, with all it refers to, is still there
    assert kept.tb is not None
