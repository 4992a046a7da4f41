"""The machines that tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine on which nobody has installed anything."""
    return Machine(tmp_path)


@pytest.fixture
def ready(machine: Machine) -> Machine:
    """A machine whose user has run `git datasets install`."""
    machine.gd(machine.root, "install")
    return machine


@pytest.fixture
def work(ready: Machine) -> Path:
    """A repository with `*.bin` tracked, an origin, and a folder remote."""
    origin = ready.bare()
    work = ready.repo()
    ready.git(work, "remote", "add", "origin", origin)
    ready.gd(work, "track", "*.bin")
    ready.gd(work, "link", ready.root / "data")
    ready.git(work, "add", ".gitattributes")
    ready.git(work, "commit", "-qm", "set up")
    return work
