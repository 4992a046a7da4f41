"""Commits with hooks of ours and of others: partial commits, staged code, refusals, bare environments."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from machines import GIT_DATASETS, Machine, digests, is_clean, tree

HEAD = "from gds_lfs import File, any_file, dataset, ingest\n\n\n@dataset\nclass D:\n"
FIELD_A = "    a: File[any_file]\n"
FIELD_B = "    b: str = 'b'\n"
INGEST = "\n    @ingest\n    def load():\n        return [b'one', b'two', b'three']\n"


@pytest.fixture
def repo(ready: Machine) -> Path:
    """A repository with a committed dataset of one File field and three rows."""
    repo = ready.repo()
    (repo / "index.py").write_text(HEAD + FIELD_A + INGEST)
    ready.gd(repo, "track", "index.py")
    ready.git(repo, "commit", "-qm", "three rows", "index.py")
    return repo


def columns(repo: Path) -> list[str]:
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        return [row[1] for row in database.execute("PRAGMA table_info(dataset)") if not row[1].startswith("_")]


def test_a_partial_commit_keeps_what_the_hook_staged(ready: Machine, repo: Path) -> None:
    (repo / "other.txt").write_text("staged, not committed")
    ready.git(repo, "add", "other.txt")
    (repo / "index.py").write_text(
        HEAD
        + FIELD_A
        + INGEST
        + "\n    def c(a: File[any_file]) -> File[any_file]:\n        return a.read_bytes() * 2\n"
    )
    ready.git(repo, "commit", "-qm", "a field", "index.py")

    assert sum(name.startswith("c/") for name in tree(ready, repo)) == 3
    assert "other.txt" not in tree(ready, repo)
    assert ready.git(repo, "status", "--porcelain").stdout == "A  other.txt\n"
    ready.git(repo, "commit", "-qm", "the other file")
    assert sum(name.startswith("c/") for name in tree(ready, repo)) == 3
    assert "other.txt" in tree(ready, repo)
    assert is_clean(ready, repo)


def test_a_removed_field_does_not_come_back_after_a_partial_commit(ready: Machine, repo: Path) -> None:
    (repo / "index.py").write_text(HEAD + FIELD_B)
    ready.git(repo, "commit", "-qm", "other fields", "index.py")
    assert is_clean(ready, repo)
    (repo / "note.txt").write_text("x")
    ready.git(repo, "add", "note.txt")
    ready.git(repo, "commit", "-qm", "next")
    assert not [name for name in tree(ready, repo) if name.startswith("a/")]
    assert is_clean(ready, repo)


def test_commit_all_and_plain_commit_work_too(ready: Machine, repo: Path) -> None:
    (repo / "index.py").write_text(HEAD + FIELD_A + FIELD_B + INGEST)
    ready.git(repo, "commit", "-qam", "with -a")
    assert columns(repo) == ["a", "b"]
    assert is_clean(ready, repo)
    (repo / "index.py").write_text(HEAD + FIELD_A + INGEST)
    ready.git(repo, "add", "index.py")
    ready.git(repo, "commit", "-qm", "staged")
    assert columns(repo) == ["a"]
    assert is_clean(ready, repo)


def test_the_staged_index_py_is_what_counts(ready: Machine, repo: Path) -> None:
    staged = HEAD + FIELD_A + "    s: str = 's'\n" + INGEST
    (repo / "index.py").write_text(staged)
    ready.git(repo, "add", "index.py")
    (repo / "index.py").write_text(staged + "    t: str = 't'\n")
    ready.git(repo, "commit", "-qm", "the staged one")
    assert columns(repo) == ["a", "s"]
    assert ready.git(repo, "status", "--porcelain").stdout == " M index.py\n"

    (repo / "index.py").write_text(HEAD + FIELD_A + INGEST)
    ready.git(repo, "add", "index.py")
    (repo / "index.py").unlink()
    ready.git(repo, "commit", "-qm", "deleted on disk")
    assert "index.py" in tree(ready, repo)
    assert columns(repo) == ["a"]
    assert ready.git(repo, "status", "--porcelain").stdout == " D index.py\n"


def test_staged_neighbours_are_imported(ready: Machine, repo: Path) -> None:
    (repo / "names.py").write_text("NAMES = [b'from the neighbour']\n")
    ready.git(repo, "add", "names.py")
    (repo / "names.py").write_text("raise SystemExit('not what is staged')\n")
    text = HEAD + FIELD_A + "\n    @ingest\n    def load():\n        from names import NAMES\n        return NAMES\n"
    (repo / "index.py").write_text(text)
    ready.git(repo, "add", "index.py")
    ready.git(repo, "commit", "-qm", "a neighbour")
    contents = {file.read_bytes() for file in (repo / "a").rglob("*") if file.is_file()}
    assert contents == {b"one", b"two", b"three", b"from the neighbour"}


@pytest.mark.parametrize("broken", ["syntax", "ingest", "transform", "declaration"])
@pytest.mark.parametrize("how", ["partial", "all"])
def test_a_refused_commit_leaves_everything_as_it_was(ready: Machine, repo: Path, broken: str, how: str) -> None:
    texts = {
        "syntax": HEAD + "    a: File[\n",
        "ingest": HEAD + FIELD_A + "\n    @ingest\n    def load():\n        yield_from = 1 / 0\n        return []\n",
        "transform": HEAD
        + FIELD_A
        + INGEST
        + "\n    def c(a: File[any_file]) -> int:\n        return len(a.nothing)\n",
        "declaration": HEAD + FIELD_A + "    x: complex\n",
    }
    (repo / "old.txt").write_text("old")
    (repo / "gone.txt").write_text("gone")
    ready.git(repo, "add", ".")
    ready.git(repo, "commit", "-qm", "texts")
    (repo / "new.txt").write_text("new")
    (repo / "old.txt").write_text("changed")
    (repo / "gone.txt").unlink()
    (repo / "index.py").write_text(texts[broken])
    ready.git(repo, "add", "-A")
    before = digests(repo), (repo / ".git/index").read_bytes(), ready.git(repo, "write-tree").stdout
    args = ["index.py"] if how == "partial" else ["-a"]
    refused = ready.git(repo, "commit", "-m", "broken", *args, check=False)

    assert refused.returncode == 1
    assert "index.py" in refused.stderr
    assert len([line for line in refused.stderr.splitlines() if line.strip()]) <= 4
    after = digests(repo), (repo / ".git/index").read_bytes(), ready.git(repo, "write-tree").stdout
    assert after[0] == before[0]
    assert after[2] == before[2]
    assert not (repo / ".git/datasets-journal").exists()
    assert not list((repo / ".git/datasets/tmp").iterdir())


def test_a_commit_that_git_ends_after_the_hook_can_be_tried_again_or_left(ready: Machine, repo: Path) -> None:
    (repo / "index.py").write_text(HEAD + FIELD_A + FIELD_B + INGEST.replace("b'three'", "b'three', b'four'"))
    ended = ready.git(repo, "commit", "-m", "", "index.py", check=False)
    assert ended.returncode != 0
    ready.git(repo, "commit", "-qm", "the second try", "index.py")
    assert columns(repo) == ["a", "b"]
    assert sum(name.startswith("a/") for name in tree(ready, repo)) == 4
    assert is_clean(ready, repo)

    before = digests(repo)
    (repo / "index.py").write_text(HEAD + FIELD_B)
    ready.git(repo, "commit", "-m", "", "index.py", check=False)
    assert not (repo / "a").exists()
    ready.git(repo, "checkout", "--", "index.py")
    ready.gd(repo, "status")
    assert digests(repo) == before
    assert is_clean(ready, repo)


def hook(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_a_hook_that_was_there_still_decides(ready: Machine, repo: Path) -> None:
    ready.gd(repo, "uninstall")
    hook(
        repo / ".git/hooks/pre-commit",
        "#!/usr/bin/env python3\nimport os, sys\nsys.exit(int(os.path.exists('forbidden')))\n",
    )
    ready.gd(repo, "install")
    first = digests(repo / ".git/hooks")
    again = ready.gd(repo, "install")
    assert digests(repo / ".git/hooks") == first
    assert "hooks installed" not in again.stderr

    (repo / "forbidden").touch()
    (repo / "index.py").write_text(HEAD + FIELD_A + FIELD_B + INGEST)
    assert ready.git(repo, "commit", "-qm", "refused", "index.py", check=False).returncode == 1
    assert columns(repo) == ["a"]
    (repo / "forbidden").unlink()
    ready.git(repo, "commit", "-qm", "allowed", "index.py")
    assert columns(repo) == ["a", "b"]


def test_hooks_that_somebody_else_generates_are_not_touched(ready: Machine, repo: Path) -> None:
    hook(repo / ".husky/_/pre-commit", "#!/bin/sh\n. .husky/pre-commit\n")
    hook(repo / ".husky/pre-commit", "#!/bin/sh\nexit 0\n")
    (repo / ".husky/_/.gitignore").write_text("*\n")
    ready.git(repo, "config", "core.hooksPath", ".husky/_")
    before = digests(repo / ".husky")
    told = ready.gd(repo, "install").stderr
    assert digests(repo / ".husky") == before
    assert "pre-commit" in told
    line = next(line for line in told.splitlines() if "hook pre-commit" in line).split(": ", 1)[1]
    hook(repo / ".husky/pre-commit", "#!/bin/sh\n" + line + "\n")
    (repo / "index.py").write_text(HEAD + FIELD_A + FIELD_B + INGEST)
    ready.git(repo, "commit", "-qam", "through the pasted line")
    assert columns(repo) == ["a", "b"]


def test_bare_path_finds_the_program(ready: Machine, repo: Path) -> None:
    bare = {"PATH": "/usr/bin:/bin"}
    (repo / "index.py").write_text(HEAD + FIELD_A + FIELD_B + INGEST)
    ready.git(repo, "commit", "-qm", "from a GUI", "index.py", env=bare)
    assert columns(repo) == ["a", "b"]
    ready.git(repo, "checkout", "-q", "HEAD~1", env=bare)
    assert columns(repo) == ["a"]
    origin = ready.bare()
    ready.git(repo, "remote", "add", "origin", origin)
    ready.git(repo, "push", "-q", "origin", "main", env=bare)
    ready.git(ready.root, "clone", "-q", origin, "elsewhere", env=bare)
    assert columns(ready.root / "elsewhere") == ["a", "b"]


def test_a_program_that_is_gone_stops_a_commit_by_name(ready: Machine, repo: Path) -> None:
    script = repo / ".git/hooks/pre-commit"
    script.write_text(script.read_text().replace(str(GIT_DATASETS), "/moved/git-datasets"))
    (repo / "index.py").write_text(HEAD + FIELD_A + FIELD_B + INGEST)
    refused = ready.git(repo, "commit", "-qm", "x", "index.py", check=False)
    assert refused.returncode != 0
    assert "/moved/git-datasets" in refused.stderr
    assert columns(repo) == ["a"]


@pytest.mark.parametrize("root", ["filled", "empty"])
def test_worktree_add_passes_an_all_zero_old_ref(ready: Machine, root: str) -> None:
    repo = ready.repo()
    if root == "empty":
        ready.git(repo, "commit", "-q", "--allow-empty", "-m", "root")
    ready.gd(repo, "track", "*.bin")
    (repo / "a.bin").write_bytes(b"a" * 5000)
    ready.git(repo, "add", ".")
    ready.git(repo, "commit", "-qm", "a file")
    added = ready.git(repo, "worktree", "add", "../linked")
    assert "bad object" not in added.stderr
    assert digests(ready.root / "linked") == digests(repo)
    shutil.rmtree(ready.root / "linked")


def test_a_clean_merge_reconciles_in_pre_merge_commit(ready: Machine, repo: Path) -> None:
    ready.git(repo, "checkout", "-qb", "side")
    (repo / "side.txt").write_text("side")
    ready.git(repo, "add", "side.txt")
    ready.git(repo, "commit", "-qm", "side")
    ready.git(repo, "checkout", "-q", "main")
    (repo / "index.py").write_text(HEAD + FIELD_A + FIELD_B + INGEST)
    ready.git(repo, "commit", "-qm", "a field", "index.py")
    ready.git(repo, "merge", "-q", "--no-edit", "side")
    assert columns(repo) == ["a", "b"]
    assert is_clean(ready, repo)


def test_a_deleted_database_comes_back_with_its_rows(ready: Machine, repo: Path) -> None:
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        database.execute("CREATE TABLE notes (text)")
    ready.git(repo, "commit", "-qam", "a table of the user's")
    (repo / "dataset.sqlite").unlink()
    (repo / "index.py").write_text(HEAD + FIELD_A + FIELD_B + INGEST)
    told = ready.git(repo, "commit", "-qam", "without the database")
    assert "dataset.sqlite was deleted" in told.stderr
    assert columns(repo) == ["a", "b"]
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        assert database.execute("SELECT count(*) FROM notes").fetchone() == (0,)
    assert is_clean(ready, repo)


def test_reconcile_again_runs_an_ingest_whose_data_changed(ready: Machine, repo: Path) -> None:
    (repo / "names.txt").write_text("first\n")
    text = HEAD + FIELD_A + "\n    @ingest\n    def load():\n        return open('names.txt', 'rb').read().split()\n"
    (repo / "index.py").write_text(text)
    ready.git(repo, "add", ".")
    ready.git(repo, "commit", "-qm", "from a file")
    (repo / "names.txt").write_text("first second\n")
    assert "nothing to do" in ready.gd(repo, "reconcile", "--dry-run").stdout
    assert "run ingest load (again)" in ready.gd(repo, "reconcile", "--dry-run", "--again").stdout
    ready.gd(repo, "reconcile", "--again")
    ready.git(repo, "commit", "-qm", "one more")
    assert sum(name.startswith("a/") for name in tree(ready, repo)) == 5
    (repo / "index.py").write_text(text + "    x: int = 1\n")
    assert "not staged" in ready.gd(repo, "reconcile", "--dry-run").stderr


def test_untracking_a_dataset_leaves_its_data_alone(ready: Machine, repo: Path) -> None:
    ready.gd(repo, "untrack", "index.py")
    (repo / "index.py").write_text(HEAD + FIELD_B)
    ready.git(repo, "commit", "-qam", "no dataset any more")
    assert columns(repo) == ["a"]
    assert sum(name.startswith("a/") for name in tree(ready, repo)) == 3
    refused = ready.gd(repo, "untrack", "index.py", check=False)
    assert refused.returncode == 4
