from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gds_lfs.lock import FileLock
from gds_lfs.porcelain.session_folder import ABANDONED, SessionFolder

KILLED = """
import os, signal, sys
from pathlib import Path
from gds_lfs.porcelain.session_folder import SessionFolder
folder = SessionFolder.open(Path(sys.argv[1]))
(folder.path / "received").write_text("much")
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(parent: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, parent], check=False)


def age(path: Path) -> None:
    then = path.stat().st_mtime - ABANDONED - 1
    os.utime(path, (then, then))


def test_a_session_leaves_nothing_unless_told_to(tmp_path: Path) -> None:
    folder = SessionFolder.open(tmp_path / "tmp")
    (folder.path / "received").write_text("much")
    folder.close()
    folder.close()
    assert list((tmp_path / "tmp").iterdir()) == []
    kept = SessionFolder.open(tmp_path / "tmp")
    kept.close(keep=True)
    assert SessionFolder.open(tmp_path / "tmp").path == kept.path


def test_the_folder_of_a_killed_session_goes_to_the_next_one_and_to_no_other(tmp_path: Path) -> None:
    killed(tmp_path)
    (left,) = tmp_path.iterdir()
    heir, other = SessionFolder.open(tmp_path), SessionFolder.open(tmp_path)
    assert heir.path == left
    assert (left / "received").read_text() == "much"
    assert other.path != left
    heir.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


def test_what_was_left_long_ago_is_removed_but_nothing_that_is_held(tmp_path: Path) -> None:
    held = SessionFolder.open(tmp_path)
    killed(tmp_path)
    (first,) = set(tmp_path.iterdir()) - {held.path}
    second = tmp_path / "git-datasets-7-abc"  # by a session without a lock, or in the middle of its end
    recent = tmp_path / "git-datasets-8-abc"
    for folder in (second, recent):
        folder.mkdir()
    for folder in (held.path, first, second):
        age(folder)
    newer = SessionFolder.open(tmp_path)
    assert newer.path == first, "old, but whole"
    assert set(tmp_path.iterdir()) == {held.path, first, recent}
    killed(tmp_path)
    (third,) = set(tmp_path.iterdir()) - {held.path, first, recent}
    (tmp_path / "git-datasets-9-abc").mkdir()
    age(tmp_path / "git-datasets-9-abc")
    last = SessionFolder.open(tmp_path)
    assert last.path == third
    assert set(tmp_path.iterdir()) == {held.path, first, recent, third}


def test_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> bool:
        raise OSError("no locks here")

    monkeypatch.setattr("gds_lfs.lock._lock", none)
    first, second = SessionFolder.open(tmp_path), SessionFolder.open(tmp_path)
    assert first.path != second.path
    first.close()
    assert list(tmp_path.iterdir()) == [second.path]


def test_one_who_is_quicker_gets_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = FileLock.create
    quick: list[FileLock] = []

    def slow(lock: FileLock) -> None:
        if not quick:
            (folder,) = tmp_path.iterdir()
            (folder / "session.lock").touch()
            quick.append(FileLock(folder / "session.lock"))
            assert quick[0].take()
        create(lock)

    monkeypatch.setattr(FileLock, "create", slow)
    folder = SessionFolder.open(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    folder.close()
    assert len(list(tmp_path.iterdir())) == 1
