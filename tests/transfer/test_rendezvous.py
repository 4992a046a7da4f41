from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gds_lfs.transfer import rendezvous
from gds_lfs.transfer.rendezvous import Meeting, meet


@pytest.fixture
def one_git_lfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is an agent, several times over."""
    folder = tmp_path.parent / os.urandom(2).hex()  # a socket's name must be short
    folder.mkdir()
    monkeypatch.setattr(rendezvous, "_git_lfs", lambda: "1.2")
    monkeypatch.setattr(rendezvous, "_private_folder", lambda: str(folder))


@pytest.mark.usefixtures("one_git_lfs")
def test_agents_that_are_told_the_same_meet() -> None:
    first = meet(b"to origin")
    assert isinstance(first, Meeting)
    second = meet(b"to origin")
    assert isinstance(second, socket.socket)
    elsewhere = meet(b"to elsewhere")
    assert isinstance(elsewhere, Meeting)
    second.close()
    for meeting in (first, elsewhere):
        meeting.close()


@pytest.mark.usefixtures("one_git_lfs")
def test_what_a_killed_agent_left_does_not_count() -> None:
    killed = meet(b"to origin")
    assert isinstance(killed, Meeting)
    killed._listener.close()  # as the system does, and the name stays
    after = meet(b"to origin")
    assert isinstance(after, Meeting)
    after.close()


@pytest.mark.usefixtures("one_git_lfs")
def test_what_killed_agents_left_is_swept_when_it_is_old() -> None:
    killed = meet(b"to origin")
    assert isinstance(killed, Meeting)
    folder = Path(rendezvous._private_folder())
    (left,) = folder.iterdir()
    killed._listener.close()
    for init, stays in ((b"to elsewhere", True), (b"to a third", False)):
        after = meet(init)
        assert isinstance(after, Meeting)
        assert left.exists() is stays
        after.close()
        if stays:
            os.utime(left, (0, 0))
    assert list(folder.iterdir()) == []


def test_without_git_lfs_there_is_no_meeting() -> None:
    assert meet(b"to origin") is None
