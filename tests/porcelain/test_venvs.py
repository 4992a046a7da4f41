from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from gds_lfs.dataset.environment import Environments
from gds_lfs.porcelain import venvs
from gds_lfs.porcelain.messages import Messages


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_DATASETS_CACHE", str(tmp_path))
    return tmp_path / "venvs"


def make(cache: Path, tmp_path: Path, text: str, days: float) -> None:
    """An environment that was used last so many days ago, made by a uv that makes a folder."""
    uv = tmp_path / "uv"
    uv.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "if sys.argv[1] == 'venv':\n"
        "    os.makedirs(sys.argv[-1] + '/bin')\n"
        f"    os.symlink({sys.executable!r}, sys.argv[-1] + '/bin/python')\n"
    )
    uv.chmod(0o755)
    (tmp_path / "requirements.txt").write_text(text)
    before = {*cache.glob("*.json")}
    Environments(cache, str(uv)).prepare(tmp_path / "requirements.txt", sys.executable, lambda _data: None)
    (marker,) = {*cache.glob("*.json")} - before
    used = time.time() - days * 24 * 3600
    os.utime(marker, (used, used))


def test_list_and_prune(cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make(cache, tmp_path, "a\nb\nc\nd\ne\nf\n", 2.5)
    make(cache, tmp_path, "", 40)
    venvs.list_environments(Messages())
    out, err = capfd.readouterr()
    first, second = out.splitlines()
    assert first.endswith("made just now       used 2 days ago     a, b, c, d and 2 more")
    assert f"Python {sys.version.split()[0]}" in first
    assert second.endswith("used 40 days ago    no requirements")
    assert err.startswith("git datasets: 2 environments, ")

    venvs.prune(Messages(), everything=False)
    err = capfd.readouterr().err
    assert f"removed {second[:8]} (Python" in err
    assert "1 environment removed" in err
    venvs.prune(Messages(), everything=True)
    assert f"removed {first[:8]} (Python" in capfd.readouterr().err
    venvs.prune(Messages(), everything=True)
    assert capfd.readouterr().err == "git datasets: nothing to remove\n"
