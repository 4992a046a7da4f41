from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from fake_installers import FakeUv, fake_python, program

from gds_lfs.dataset.install_failure import EnvironmentFailure
from gds_lfs.dataset.interpreters import choose, probe
from gds_lfs.dataset.requirements import Needed

if TYPE_CHECKING:
    from pathlib import Path

NEEDED = Needed("code-loader", ">=1", (3, 8), (3, 12))


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def test_probe_asks_the_interpreter_itself() -> None:
    found = probe(sys.executable)
    assert found is not None
    assert found.version == sys.version_info[:3]
    assert str(found) == f"Python {sys.version.split()[0]}"


@pytest.mark.parametrize("text", ["print('hello')", "raise SystemExit(3)", "print('[1]')"])
def test_what_is_no_python(tmp_path: Path, text: str) -> None:
    assert probe(program(tmp_path / "python", text)) is None


def test_one_that_does_is_taken_as_it_is(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "python", (3, 11, 7))
    assert choose(python, None, None, None).path == python
    assert choose(python, (3, 11), NEEDED, None).path == python


def test_the_wanted_version_is_found_on_the_path(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "python", (3, 11, 7))
    other = fake_python(tmp_path / "bin" / "python3.10", (3, 10, 2))
    assert choose(python, (3, 10), None, None).path == other


def test_a_program_that_only_has_the_name_of_a_version_is_passed_by(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "python", (3, 11, 7))
    program(tmp_path / "bin" / "python3.10", "raise SystemExit('not installed')")
    uv = FakeUv(tmp_path)
    uv.set("found", fake_python(tmp_path / "elsewhere" / "python", (3, 10, 9)))
    assert choose(python, (3, 10), None, uv.path).version == (3, 10, 9)


def test_a_needed_package_gets_the_newest_python_that_it_takes(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "python", (3, 13, 0))
    fake_python(tmp_path / "bin" / "python3.9", (3, 9, 1))
    newest = fake_python(tmp_path / "bin" / "python3.12", (3, 12, 1))
    assert choose(python, None, NEEDED, None).path == newest


@pytest.mark.parametrize(
    ("version", "wanted", "message"),
    [
        ((3, 11, 7), (3, 10), r"leap\.yaml asks for Python 3\.10 \(pythonVersion\); .* is Python 3\.11\.7"),
        ((3, 13, 0), None, r"code-loader needs Python 3\.8 to 3\.12; .* is Python 3\.13\.0"),
        ((3, 11, 7), (3, 13), r"leap\.yaml asks for Python 3\.13"),
    ],
)
def test_a_version_that_nobody_has(
    tmp_path: Path, version: tuple[int, int, int], wanted: tuple[int, int] | None, message: str
) -> None:
    python = fake_python(tmp_path / "python", version)
    with pytest.raises(EnvironmentFailure, match=message) as caught:
        choose(python, wanted, NEEDED, FakeUv(tmp_path).path)
    assert caught.value.kind == "wrong_python"
    assert "git config datasets.python" in caught.value.advice


def test_an_interpreter_that_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="is not a Python that can be run"):
        choose(str(tmp_path / "nothing"), None, None, None)
