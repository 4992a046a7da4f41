"""Environments made by the real uv and pip, from a real index."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from machines import BIN, Machine

from gds_lfs.dataset.environment import Environments
from gds_lfs.dataset.install_failure import EnvironmentFailure

pytestmark = pytest.mark.usefixtures("index")

PREPARE = """
import sys
from pathlib import Path
from gds_lfs.dataset.environment import Environments
def show(data):
    sys.stderr.buffer.write(data)
print(Environments(Path(sys.argv[1]), sys.argv[2]).prepare(Path(sys.argv[3]), sys.executable, show))
"""


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    return Environments(tmp_path / "venvs", str(BIN / "uv"))


@pytest.fixture
def with_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environments:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    return Environments(tmp_path / "venvs")


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text("six==1.17.0\n")
    return path


def refused(environments: Environments, requirements: Path) -> EnvironmentFailure:
    with pytest.raises(EnvironmentFailure) as caught:
        environments.prepare(requirements, sys.executable, lambda _data: None)
    return caught.value


def version_of_six(python: str) -> str:
    command = [python, "-c", "import six, sys; print(six.__version__, sys.prefix)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]


def test_a_real_package_is_there_once_and_another_after_a_change(
    environments: Environments, requirements: Path
) -> None:
    printed: list[bytes] = []
    python = environments.prepare(requirements, sys.executable, printed.append)
    assert version_of_six(python) == "1.17.0"
    assert b"six" in b"".join(printed)
    printed.clear()
    assert environments.prepare(requirements, sys.executable, printed.append) == python
    assert printed == []
    requirements.write_text("six==1.16.0\n")
    assert version_of_six(environments.prepare(requirements, sys.executable, printed.append)) == "1.16.0"
    assert version_of_six(python) == "1.17.0"
    assert len(environments.list()) == 2


@pytest.mark.parametrize(
    ("text", "kind", "headline"),
    [
        ("six==99.0", "requirement", "six==99.0: there is no such version"),
        ("six==1.17.0\nsix==1.16.0", "conflict", "six==1.1"),
        ("six==1.17.0\nsix six", "requirement", "requirements.txt:2: six six: this is not a requirement"),
    ],
)
def test_what_the_real_resolver_says_is_understood_and_nothing_is_left(
    environments: Environments, requirements: Path, text: str, kind: str, headline: str
) -> None:
    requirements.write_text(text)
    failure = refused(environments, requirements)
    assert (failure.kind, failure.headline[: len(headline)]) == (kind, headline)
    assert environments.list() == []
    assert not [path for path in (requirements.parent / "venvs").iterdir() if path.is_dir()]


def test_pip_makes_environments_where_there_is_no_uv(with_pip: Environments, requirements: Path) -> None:
    assert version_of_six(with_pip.prepare(requirements, sys.executable, lambda _data: None)) == "1.17.0"
    requirements.write_text("six==1.17.0\nsix==1.16.0\n")
    failure = refused(with_pip, requirements)
    assert failure.kind == "conflict"
    assert "The user requested six==1.16.0" in failure.detail
    assert len(with_pip.list()) == 1


@pytest.mark.parametrize("tool", ["environments", "with_pip"])
def test_an_index_that_is_not_there(
    tool: str, request: pytest.FixtureRequest, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_CONFIG_FILE", "UV_CONFIG_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    for name in ("PIP_INDEX_URL", "UV_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    failure = refused(request.getfixturevalue(tool), requirements)
    assert failure.kind == "network"
    assert failure.headline.startswith("the package index cannot be reached: ")


def test_two_processes_build_one_environment(requirements: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PREPARE, tmp_path / "venvs", BIN / "uv", requirements]

    def build() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, capture_output=True, check=True)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(build), pool.submit(build)
    done = [first.result(), second.result()]
    (python,) = {each.stdout.decode().strip() for each in done}
    assert version_of_six(python) == "1.17.0"
    assert sum(b"+ six==1.17.0" in each.stderr for each in done) == 1
    assert len([path for path in (tmp_path / "venvs").iterdir() if path.is_dir()]) == 1


def test_the_command_lists_and_prunes_them(requirements: Path, machine: Machine, tmp_path: Path) -> None:
    machine.env["GIT_DATASETS_CACHE"] = str(tmp_path)
    python = Environments(tmp_path / "venvs", str(BIN / "uv")).prepare(requirements, sys.executable, lambda _data: None)
    listed = machine.gd(tmp_path, "venv", "list").stdout
    assert listed.startswith(Path(python).parent.parent.name[:8])
    assert listed.endswith("six==1.17.0\n")
    assert "nothing to remove" in machine.gd(tmp_path, "venv", "prune").stderr
    assert "1 environment removed" in machine.gd(tmp_path, "venv", "prune", "--all").stderr
    assert not Path(python).exists()
