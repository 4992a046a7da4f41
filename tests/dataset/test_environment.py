from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from fake_installers import FakeUv, fake_python

from gds_lfs.dataset import environment as module
from gds_lfs.dataset.environment import Environments
from gds_lfs.dataset.install_failure import EnvironmentFailure
from gds_lfs.dataset.requirements import Needed
from gds_lfs.lock import FileLock

NEEDED = Needed("code-loader", ">=1,<2", (3, 8), (3, 14))
CONFLICT = """error: No solution found when resolving dependencies
  cause: Because code-loader>=1 depends on numpy>=2 and you require code-loader>=1, we can conclude that you require numpy>=2.
         And because you require numpy==1.0, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501


class Case:
    """A dataset's folder, a cache, and a uv that installs nothing."""

    def __init__(self, root: Path) -> None:
        self.uv = FakeUv(root)
        self.cache = root / "cache" / "venvs"
        self.environments = Environments(self.cache, self.uv.path)
        self.folder = root / "work"
        self.folder.mkdir()
        self.requirements = self.folder / "requirements.txt"
        self.requirements.write_text("six\n")
        self.printed = b""

    def prepare(self, **more: object) -> str:
        return self.environments.prepare(self.requirements, sys.executable, self._print, **more)  # type: ignore[arg-type]

    def _print(self, data: bytes) -> None:
        self.printed += data

    def folders(self) -> list[str]:
        return sorted(path.name for path in self.cache.iterdir() if path.is_dir())


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_it_is_built_once_in_the_folder_of_the_requirements(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "VIRTUAL_ENV", "PYTHONPATH"):
        monkeypatch.setenv(name, "/elsewhere")
    python = case.prepare()
    assert Path(python).parent.parent.parent == case.cache
    assert os.access(python, os.X_OK)
    assert case.printed == b"installing\n"
    assert case.prepare() == python
    (make, install) = case.uv.calls
    assert make[0][0] == "venv"
    assert install[0] == ["pip", "install", "--python", python, "-r", "requirements.txt"]
    assert install[1] == str(case.folder)
    assert not {"GIT_DIR", "GIT_INDEX_FILE", "VIRTUAL_ENV", "PYTHONPATH"} & {*install[2]}
    assert {"UV_COMPILE_BYTECODE", "UV_PYTHON_DOWNLOADS"} <= {*install[2]}


def test_any_change_of_the_file_or_of_what_it_includes_makes_another(case: Case) -> None:
    found = [case.prepare()]
    case.requirements.write_text("six \n")
    found.append(case.prepare())
    case.requirements.write_text("-r more.txt\n")
    (case.folder / "more.txt").write_text("six\n")
    found.append(case.prepare())
    (case.folder / "more.txt").write_text("six<2\n")
    found.append(case.prepare())
    assert len({*found}) == 4
    (case.folder / "more.txt").write_text("six\n")
    assert case.prepare() == found[2]
    assert len(case.uv.installs) == 4


def test_a_package_beside_the_code_counts_with_its_content(case: Case) -> None:
    case.requirements.write_text("./package\n")
    (case.folder / "package").mkdir()
    (case.folder / "package" / "setup.py").write_text("1")
    first = case.prepare()
    (case.folder / "package" / "setup.py").write_text("2")
    assert case.prepare() != first


def test_another_python_or_version_of_ours_makes_another(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = case.prepare()
    other = fake_python(tmp_path / "python", (3, 11, 99))
    second = case.environments.prepare(case.requirements, other, case._print)
    monkeypatch.setattr(module, "__version__", "99")
    assert len({first, second, case.prepare()}) == 3


def test_a_needed_package_is_added_unless_it_is_named(case: Case) -> None:
    case.prepare(needed=NEEDED)
    case.requirements.write_text("Code_Loader==1.5\n")
    case.prepare(needed=NEEDED)
    assert [install[-2:] for install in case.uv.installs] == [
        ["requirements.txt", "code-loader>=1,<2"],
        ["-r", "requirements.txt"],
    ]
    assert [environment.requirements for environment in case.environments.list()] == [
        ["Code_Loader==1.5"],
        ["six", "code-loader>=1,<2"],
    ]


def test_a_failed_build_leaves_nothing_that_counts(case: Case) -> None:
    case.uv.set("fails", "error: no luck")
    for _ in range(2):
        with pytest.raises(EnvironmentFailure, match="no luck"):
            case.prepare()
    assert case.folders() == []
    assert case.environments.list() == []
    (case.uv.state / "fails").unlink()
    case.prepare()
    assert len(case.uv.installs) == 3


def test_one_that_stops_in_between_leaves_nothing_that_counts(case: Case) -> None:
    def stop(_data: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        case.environments.prepare(case.requirements, sys.executable, stop)
    assert case.folders() == []


def test_what_a_killed_build_left_is_swept_by_the_next(case: Case) -> None:
    key = Path(case.prepare()).parent.parent.name.partition("-")[0]
    for left in (f"{key}-0001", "00000000000000000000-0001"):
        (case.cache / left / "bin").mkdir(parents=True)
    case.requirements.write_text("other\n")
    case.prepare()
    assert len(case.folders()) == 2
    assert not any(name.endswith("-0001") for name in case.folders())


def test_what_somebody_builds_is_not_swept(case: Case) -> None:
    (case.cache / "00000000000000000000-0001").mkdir(parents=True)
    lock = FileLock(case.cache / "00000000000000000000.lock")
    assert lock.wait(0)
    case.prepare()
    assert "00000000000000000000-0001" in case.folders()
    lock.release()


def test_an_environment_whose_python_is_gone_is_built_anew(case: Case) -> None:
    first = case.prepare()
    Path(first).unlink()
    second = case.prepare()
    assert second != first
    assert case.folders() == [Path(second).parent.parent.name]


def _prepare(case: Case, found: object) -> None:
    found.put(case.prepare())  # type: ignore[attr-defined]


def test_builders_wait_for_each_other(case: Case) -> None:
    case.uv.set("seconds", "0.5")
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    builders = [context.Process(target=_prepare, args=(case, queue)) for _ in range(2)]
    for builder in builders:
        builder.start()
    found = {queue.get() for _ in builders}
    for builder in builders:
        builder.join()
    assert len(found) == 1
    assert len(case.uv.installs) == 1


def test_a_builder_that_is_killed_leaves_nothing_that_counts(case: Case) -> None:
    case.uv.set("seconds", "3")
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    builder = context.Process(target=_prepare, args=(case, queue))
    builder.start()
    while builder.is_alive() and not case.uv.installs:
        time.sleep(0.01)
    builder.kill()
    builder.join()
    (left,) = case.folders()
    assert case.environments.list() == []
    case.uv.set("seconds", "0")
    python = case.prepare()
    assert case.folders() == [Path(python).parent.parent.name] != [left]


def test_a_conflict_with_what_is_added_is_told_apart(case: Case) -> None:
    case.uv.set("fails", CONFLICT)
    with pytest.raises(EnvironmentFailure, match="can be installed, but not beside code-loader>=1,<2") as caught:
        case.prepare(needed=NEEDED)
    assert caught.value.kind == "loader_conflict"
    assert "code-loader>=1 and numpy==1.0 exclude each other" in caught.value.headline
    assert case.uv.installs[-1][-2:] == ["requirements.txt", "--dry-run"]


def test_a_conflict_of_the_users_own_stays_one(case: Case) -> None:
    case.uv.set("fails", CONFLICT)
    case.uv.set("dry-run-fails", CONFLICT)
    with pytest.raises(EnvironmentFailure) as caught:
        case.prepare(needed=NEEDED)
    assert caught.value.kind == "conflict"


def test_a_killed_installer_is_told_as_such(case: Case, tmp_path: Path) -> None:
    case.uv.set("fails", "")
    Path(case.uv.path).write_text(f"#!{sys.executable}\nimport os\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(EnvironmentFailure, match="SIGKILL") as caught:
        case.prepare()
    assert caught.value.kind == "environment"
    assert case.folders() == []


def test_a_cache_that_cannot_be_written(case: Case) -> None:
    case.cache.parent.write_text("a file")
    with pytest.raises(EnvironmentFailure, match="cannot be made in") as caught:
        case.prepare()
    assert caught.value.kind == "environment"


def test_without_uv_it_is_pip(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    python = fake_python(tmp_path / "python", (3, 11, 7))
    made = Environments(case.cache).prepare(case.requirements, python, case._print)
    assert Path(made).resolve() == Path(python)
    assert case.printed == b"called with -I -m pip install -r requirements.txt\n"
    assert case.uv.calls == []


def test_list_and_prune(case: Case) -> None:
    old = case.prepare()
    case.requirements.write_text("# nothing\nnumpy\npillow\n")
    new = case.prepare()
    marker = case.cache / f"{Path(old).parent.parent.name.partition('-')[0]}.json"
    os.utime(marker, (time.time() - 1000, time.time() - 1000))
    first, second = case.environments.list()
    assert (first.requirements, second.requirements) == (["numpy", "pillow"], ["six"])
    assert first.python == f"Python {sys.version.split()[0]}"
    assert first.size > 0
    assert abs(first.made - time.time()) < 100
    assert [each.key for each in case.environments.prune(500)] == [second.key]
    assert case.folders() == [Path(new).parent.parent.name]
    assert [each.key for each in case.environments.prune(0)] == [first.key]
    assert case.environments.list() == []
    assert list(case.cache.iterdir()) == []


def test_prune_takes_what_can_never_be_used_again(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(case.prepare()).unlink()
    assert len(case.environments.prune(10_000)) == 1
    case.prepare()
    monkeypatch.setattr(module, "__version__", "99")
    assert len(case.environments.prune(10_000)) == 1


def test_use_is_noted(case: Case) -> None:
    case.prepare()
    (marker,) = case.cache.glob("*.json")
    os.utime(marker, (1000, 1000))
    case.prepare()
    assert case.environments.list()[0].used > 1000


def test_prune_of_a_cache_that_is_not_there(case: Case) -> None:
    assert case.environments.prune(0) == []
    assert case.environments.list() == []
