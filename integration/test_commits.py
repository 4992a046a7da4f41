"""What a commit makes of a dataset, and what is left of a commit that does not come about."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
from machines import Done, Machine, digests, is_clean, tree

HEAD = "from gds_lfs import File, any_file, dataset, ingest\n\n\n@dataset\nclass D:\n"
A = "    a: File[any_file]\n"
B = "    b: str = 'b'\n"
INGEST = "\n    @ingest\n    def load():\n        return [b'one', b'two', b'three']\n"
DOUBLED = "\n    def c(a: File[any_file]) -> File[any_file]:\n        return a.read_bytes() * 2\n"
TRIPLED = DOUBLED.replace("* 2", "* 3")
FAILING = "\n    @ingest\n    def load():\n        return 1 / 0\n"


def make(machine: Machine, *names: str) -> Path:
    """A repository with a committed dataset of three rows and two columns of files at each of these paths."""
    repo = machine.repo()
    machine.git(repo, "remote", "add", "origin", machine.bare())
    for name in names:
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(HEAD + A + INGEST + DOUBLED)
        machine.gd(repo, "track", name)
    machine.git(repo, "commit", "-qm", "rows", *names)
    return repo


@pytest.fixture
def repo(ready: Machine) -> Path:
    return make(ready, "index.py")


def state(machine: Machine, repo: Path) -> tuple[dict[str, str], str, str]:
    """The work tree, the index, and what git says of both."""
    listed = machine.git(repo, "ls-files", "-s").stdout
    return digests(repo), listed, machine.git(repo, "status", "--porcelain").stdout


def assert_whole(machine: Machine, repo: Path) -> None:
    """Clean, free of faults, and the same in a clone."""
    assert machine.git(repo, "status", "--porcelain").stdout == ""
    machine.gd(repo, "fsck")
    machine.gd(repo, "status")
    assert not (repo / ".git/datasets-journal").exists()
    machine.git(repo, "push", "-qf", "origin", "HEAD:refs/heads/main")
    machine.git(machine.root, "clone", "-q", "origin.git", "copy")
    assert digests(machine.root / "copy") == digests(repo)


def refuse(machine: Machine, repo: Path, *args: str) -> Done:
    """A commit that must fail and leave everything as it was."""
    before = state(machine, repo)
    refused = machine.git(repo, "commit", "-m", "refused", *args, check=False)
    assert refused.returncode == 1
    assert state(machine, repo) == before
    assert not (repo / ".git/datasets-journal").exists()
    return refused


def files(repo: Path, field: str) -> list[Path]:
    return sorted(path for path in (repo / field).rglob("*") if path.is_file())


@pytest.mark.parametrize("how", ["partial", "all"])
def test_two_datasets_change_in_one_commit(ready: Machine, how: str) -> None:
    repo = make(ready, "x/index.py", "y/index.py")
    assert is_clean(ready, repo)
    for name in "xy":
        (repo / name / "index.py").write_text(HEAD + A + B + INGEST + TRIPLED)
    ready.git(repo, "commit", "-qm", "both", *(["-a"] if how == "all" else ["x/index.py", "y/index.py"]))
    assert {path.read_bytes() for path in [*files(repo, "x/c"), *files(repo, "y/c")]} == {
        content * 3 for content in (b"one", b"two", b"three")
    }
    assert_whole(ready, repo)


@pytest.mark.parametrize("how", ["partial", "all"])
def test_a_dataset_that_fails_leaves_the_other_as_it_was(ready: Machine, how: str) -> None:
    repo = make(ready, "x/index.py", "y/index.py")
    (repo / "x/index.py").write_text(HEAD + A + INGEST)
    (repo / "y/index.py").write_text(HEAD + A + FAILING)
    refused = refuse(ready, repo, *(["-a"] if how == "all" else ["x/index.py", "y/index.py"]))
    assert "y/index.py:10, in load: ZeroDivisionError" in refused.stderr


def test_two_datasets_of_a_commit_that_git_ends_are_both_taken_back(ready: Machine) -> None:
    repo = make(ready, "x/index.py", "y/index.py")
    before = digests(repo)
    for name in "xy":
        (repo / name / "index.py").write_text(HEAD + A + INGEST)
    ready.git(repo, "commit", "-m", "", "x/index.py", "y/index.py", check=False)
    ready.git(repo, "checkout", "x/index.py", "y/index.py")
    assert digests(repo) == before
    assert_whole(ready, repo)


def test_what_an_ended_commit_staged_does_not_leak_into_the_next(ready: Machine, repo: Path) -> None:
    (repo / "index.py").write_text(HEAD + A + INGEST + DOUBLED + DOUBLED.replace("c(", "d("))
    ready.git(repo, "add", "index.py")
    ready.git(repo, "commit", "-m", "", check=False)
    (repo / "index.py").write_text(HEAD + A + B + INGEST)
    ready.git(repo, "commit", "-qm", "something else", "index.py")
    assert not [name for name in tree(ready, repo) if name.startswith(("c/", "d/"))]
    assert_whole(ready, repo)


def test_unstaging_an_ended_commit_takes_its_files_out_of_the_index(ready: Machine, repo: Path) -> None:
    before = state(ready, repo)
    (repo / "index.py").write_text(HEAD + A + INGEST + TRIPLED)
    ready.git(repo, "add", "index.py")
    ready.git(repo, "commit", "-m", "", check=False)
    ready.git(repo, "checkout", "HEAD", "--", "index.py")
    ready.gd(repo, "status")
    assert state(ready, repo) == before


# A stand-in for the moment in which the power goes: the hook is killed in the middle of its n-th call of a function.
KILLER = """
import importlib, os, signal, sys
place, number = os.environ.get("KILL_AT", ":").split(":")
if number and sys.orig_argv[-2:-1] == ["hook"] and place.startswith(sys.orig_argv[-1]):
    module, name = place.split("/")[1].rsplit(".", 1)
    module = importlib.import_module("gds_lfs.porcelain." + module)
    inner, calls = getattr(module, name), []
    def function(*args, **options):
        calls.append(1)
        if len(calls) == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*args, **options)
    setattr(module, name, function)
"""


@pytest.mark.parametrize(
    "place",
    [
        "pre-commit/journal.save:1",
        "pre-commit/checkout.move:2",
        "pre-commit/applying.stage:1",
        "pre-commit/journal.save:2",
        "post-commit/recovery.repair_index:1",
    ],
)
def test_a_commit_killed_at_any_moment_can_be_taken_back_or_finished(
    ready: Machine, repo: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(KILLER)
    killed = {"PYTHONPATH": str(tmp_path / "site"), "KILL_AT": place}
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        database.execute("CREATE VIEW made_by_hand AS SELECT 1")
    database.close()
    before = state(ready, repo)
    text = (repo / "index.py").read_text()
    for round_ in ("taken back", "finished"):
        (repo / "index.py").write_text(HEAD + A + B + INGEST.replace("b'two'", "b'two', b'four'") + TRIPLED)
        done = ready.git(repo, "commit", "-qm", round_, "index.py", check=False, env=killed)
        if place.startswith("post"):
            assert done.returncode == 0
            ready.gd(repo, "status")
            break
        assert done.returncode != 0
        if round_ == "taken back":
            (repo / "index.py").write_text(text)
            ready.gd(repo, "status")
            assert state(ready, repo) == before
        else:
            ready.git(repo, "commit", "-qm", "finished", "index.py")
    assert len(files(repo, "c")) == 4
    assert_whole(ready, repo)
    assert not list((repo / ".git/datasets/tmp").glob("reconcile-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_hanging_ingest_ends_with_its_commit(ready: Machine, repo: Path, tmp_path: Path, number: int) -> None:
    mark = tmp_path / "pid"
    code = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    (repo / "index.py").write_text(HEAD + A + f"\n    @ingest\n    def load():\n        {code}\n")
    before = state(ready, repo)
    commit = subprocess.Popen(
        ["git", "commit", "-qm", "hangs", "index.py"],
        cwd=repo,
        env=ready.env,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while not (mark.exists() and mark.read_text()):
        time.sleep(0.05)
    os.killpg(commit.pid, number)
    said = commit.communicate(timeout=30)[1]
    assert b"Traceback" not in said
    child = int(mark.read_text())
    for _ in range(100):
        if not Path(f"/proc/{child}/stat").exists() or Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.1)
    else:
        raise AssertionError("the user's code goes on without its commit")
    (repo / ".git/index.lock").unlink(missing_ok=True)  # of the git that was killed
    assert state(ready, repo) == before


def test_a_file_that_no_row_names_is_left_out(ready: Machine, repo: Path) -> None:
    (repo / "a/stray.bin").write_bytes(b"stray")
    ready.git(repo, "add", ".")
    assert "a/stray.bin" in refuse(ready, repo).stderr, "nothing else was staged, and git would commit nothing"
    (repo / "note.txt").write_text("a note")
    ready.git(repo, "add", "note.txt")
    told = ready.git(repo, "commit", "-qm", "a note").stderr
    assert "a/stray.bin" in told
    assert "a/stray.bin" not in tree(ready, repo)
    assert (repo / "a/stray.bin").read_bytes() == b"stray"


def test_a_row_keeps_its_file(ready: Machine, repo: Path) -> None:
    name = str(files(repo, "a")[0].relative_to(repo))
    ready.git(repo, "rm", "-q", name)
    assert name in refuse(ready, repo).stderr
    (repo / "note.txt").write_text("a note")
    ready.git(repo, "add", "note.txt")
    assert name in ready.git(repo, "commit", "-qm", "a note").stderr
    assert name in tree(ready, repo)
    assert_whole(ready, repo)


def test_a_file_changed_by_hand_is_never_overwritten(ready: Machine, repo: Path) -> None:
    files(repo, "c")[1].write_bytes(b"mine")
    (repo / "index.py").write_text(HEAD + A + INGEST + TRIPLED)
    refused = refuse(ready, repo, "index.py")
    assert f"{files(repo, 'c')[1].relative_to(repo)} was changed by hand" in refused.stderr


def test_something_else_in_the_place_of_a_folder_is_named(ready: Machine, repo: Path) -> None:
    (repo / "d").write_text("not a folder")
    (repo / "index.py").write_text(HEAD + A + INGEST + DOUBLED + DOUBLED.replace("c(", "d("))
    assert "d is in the way" in refuse(ready, repo, "index.py").stderr


@pytest.mark.parametrize("harm", ["open(a, 'wb').write(b'harm')", "a.path.unlink()"])
def test_a_transform_cannot_harm_its_inputs(ready: Machine, repo: Path, harm: str) -> None:
    text = HEAD + A + INGEST + DOUBLED + f"\n    def d(a: File[any_file]) -> int:\n        {harm}\n        return 1\n"
    (repo / "index.py").write_text(text)
    assert "the transform d changed its input a" in refuse(ready, repo, "index.py").stderr


def test_a_database_gets_another_name(ready: Machine, repo: Path) -> None:
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        database.execute("CREATE VIEW made_by_hand AS SELECT 1")
    database.close()
    text = (repo / "index.py").read_text()
    before = state(ready, repo)
    renamed = text.replace("@dataset\n", '@dataset(sql_file="people ü.db")\n')
    (repo / "index.py").write_text(renamed)
    ready.git(repo, "commit", "-m", "", "index.py", check=False)
    (repo / "index.py").write_text(text)
    ready.gd(repo, "status")
    assert state(ready, repo) == before

    (repo / "index.py").write_text(renamed)
    ready.git(repo, "commit", "-qm", "another name", "index.py")
    assert "dataset.sqlite" not in tree(ready, repo)
    assert "/dataset.sqlite " not in (repo / ".gitattributes").read_text()
    with sqlite3.connect(repo / "people ü.db") as database:
        assert database.execute("SELECT * FROM made_by_hand").fetchall() == [(1,)]
        assert database.execute("SELECT count(*) FROM dataset").fetchall() == [(3,)]
    database.close()
    assert_whole(ready, repo)


def test_removing_index_py_says_what_stays(ready: Machine, repo: Path) -> None:
    ready.git(repo, "rm", "-q", "index.py")
    told = ready.git(repo, "commit", "-qm", "no dataset any more").stderr
    assert "git rm -r dataset.sqlite a c" in told
    assert_whole(ready, repo)


def test_a_clone_without_data_commits_a_transform(ready: Machine, repo: Path) -> None:
    ready.git(repo, "push", "-qu", "origin", "main")
    without = {"GIT_DATASETS_SKIP_SMUDGE": "1"}
    ready.git(ready.root, "clone", "-q", "origin.git", "bare bones", env=without)
    clone = ready.root / "bare bones"
    (clone / "index.py").write_text(HEAD + A + INGEST + TRIPLED)
    ready.git(clone, "commit", "-qm", "tripled", "index.py", env=without)
    assert is_clean(ready, clone)
    assert {path.read_bytes() for path in files(clone, "c")} == {b"oneoneone", b"twotwotwo", b"threethreethree"}
    ready.git(clone, "push", "-q")
    ready.git(repo, "pull", "-q")
    ready.gd(clone, "pull")
    assert digests(clone) == digests(repo)


def test_a_clone_without_data_whose_remote_is_away_commits_what_needs_none(ready: Machine, repo: Path) -> None:
    ready.git(repo, "push", "-qu", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    (ready.root / "origin.git/datasets-remote").rename(ready.root / "away")
    clone = ready.root / "clone"
    (clone / "note.txt").write_text("a note")
    ready.git(clone, "add", "note.txt")
    ready.git(clone, "commit", "-qm", "a note")
    (clone / "index.py").write_text(HEAD + A + INGEST + TRIPLED)
    assert "is not there" in ready.git(clone, "commit", "-qm", "tripled", "index.py", check=False).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD + A + "\n    @ingest\n    def load():\n        return None\n",
            "index.py:9: the ingest load: returned None",
        ),
        (HEAD + A + B + "    x: complex\n", "index.py:8: x: "),
        (
            HEAD + A + INGEST + "\n    def t(a: File[any_file]) -> int:\n        return 'x'\n",
            "index.py:12: the transform t",
        ),
        (HEAD + A + "    # \xe9\n", "index.py is not staged as UTF-8 text"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(ready: Machine, repo: Path, text: str, message: str) -> None:
    (repo / "index.py").write_bytes(text.encode("latin-1"))
    told = refuse(ready, repo, "index.py").stderr
    assert message in told
    assert len(told.strip().splitlines()) <= 2


def test_what_an_empty_commit_advises_deletes_no_file_that_was_added(ready: Machine, repo: Path) -> None:
    (repo / "a/mine.bin").write_bytes(b"the only copy")
    ready.git(repo, "add", "a/mine.bin")
    told = refuse(ready, repo).stderr
    assert "`git restore --staged FILE`" in told
    assert "--worktree" not in told
    ready.git(repo, "restore", "--staged", "a/mine.bin")
    assert (repo / "a/mine.bin").read_bytes() == b"the only copy"


def test_what_an_empty_commit_advises_brings_a_deleted_file_back(ready: Machine, repo: Path) -> None:
    gone = files(repo, "a")[0]
    content = gone.read_bytes()
    ready.git(repo, "rm", "-q", gone)
    told = refuse(ready, repo).stderr
    assert "`git restore --staged --worktree FILE`" in told
    assert "`git restore --staged FILE`" not in told
    ready.git(repo, "restore", "--staged", "--worktree", gone)
    assert gone.read_bytes() == content
    assert is_clean(ready, repo)
