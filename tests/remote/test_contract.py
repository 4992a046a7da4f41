"""The kinds of remotes that need no other program: each has to keep the whole contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from contract import *  # noqa: F403 - the tests of the contract

from gds_lfs.remote.base import Remote, open_remote

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def directory(base: Path) -> Remote:
    return open_remote("remote", base)


FACTORIES: dict[str, Callable[[Path], Remote]] = {"directory": directory}


@pytest.fixture(params=FACTORIES)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Remote:
    made = FACTORIES[request.param](tmp_path)
    made.create()
    return made
