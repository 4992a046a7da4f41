"""Parses that come with a commit and a push: once, with nothing changed when they fail, and never of others' code."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from machines import Machine, digests, is_clean, tree

CODE = """\
from pathlib import Path

from gds_lfs import File, dataset, ingest, input, preprocess, txt

HERE = Path(__file__).parent


def count(what):
    with open(COUNT, "a") as file:
        file.write(what + "\\n")


@dataset
class D:
    a: File[txt]

    @ingest
    def load():
        count("ingest")
        return [b"one", (HERE / "raw.txt").read_bytes()]

    def size(a: File[txt]) -> int:
        count("transform")
        return len(a.read_bytes())

    @preprocess
    def split(rows):
        count("preprocess")
        return {"training": rows}

    @input("a")
    def an_input(row):
        count("input")
        return [row.size]
"""


class Counted:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.file = machine.root / "count"
        self.repo = machine.repo()
        self.code = CODE.replace("COUNT", repr(str(self.file)))
        machine.git(self.repo, "remote", "add", "origin", machine.bare())
        (self.repo / "index.py").write_text(self.code)
        (self.repo / "raw.txt").write_text("two")  # the ingest's own, never committed
        (self.repo / ".gitignore").write_text("raw.txt\n")
        machine.gd(self.repo, "track", "index.py")

    def since(self) -> list[str]:
        """What has run since this was last asked."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.file.unlink(missing_ok=True)
        return lines

    def write(self, old: str, new: str) -> None:
        self.code = self.code.replace(old, new)
        (self.repo / "index.py").write_text(self.code)


@pytest.fixture
def counted(ready: Machine) -> Counted:
    return Counted(ready)


ONCE = ["ingest", "transform", "transform", "preprocess", "input"]


def test_a_commit_runs_everything_once_and_its_push_nothing(counted: Counted) -> None:
    git, repo = counted.machine.git, counted.repo
    done = git(repo, "commit", "-qm", "rows")
    assert counted.since() == ONCE
    assert "git datasets: index.py: loads (1 value of 1 split looked at, " in done.stderr
    assert is_clean(counted.machine, repo)
    git(repo, "push", "-q", "origin", "main")
    assert counted.since() == []


def test_an_edited_handler_computes_nothing_again(counted: Counted) -> None:
    git, repo = counted.machine.git, counted.repo
    git(repo, "commit", "-qm", "rows")
    rows = sqlite3.connect(repo / "dataset.sqlite").execute("SELECT * FROM dataset").fetchall()
    counted.since()
    counted.write("[row.size]", "[row.size, 1]")
    git(repo, "commit", "-qm", "two values", "index.py")
    assert counted.since() == ["preprocess", "input"]
    assert sqlite3.connect(repo / "dataset.sqlite").execute("SELECT * FROM dataset").fetchall() == rows
    counted.write("[row.size, 1]", "[row.size, 1]  # a comment")
    git(repo, "commit", "-qm", "a comment", "index.py")
    (repo / "README").write_text("")
    git(repo, "add", "README")
    git(repo, "commit", "-qm", "no code")
    assert counted.since() == []
    git(repo, "push", "-q", "origin", "main")
    assert counted.since() == []
    assert is_clean(counted.machine, repo)


def test_a_handler_that_fails_aborts_the_commit_with_nothing_changed(counted: Counted) -> None:
    git, repo = counted.machine.git, counted.repo
    counted.write("[row.size]", "(HERE / 'raw.txt').read_text()")
    git(repo, "add", "index.py")
    before = digests(repo), git(repo, "ls-files", "-s").stdout
    done = git(repo, "commit", "-qm", "rows", check=False)
    assert done.returncode == 1
    assert "index.py does not load for somebody else, so nothing was changed:" in done.stderr
    assert "in an_input: FileNotFoundError" in done.stderr
    assert "    in input a, split training, sample " in done.stderr
    assert "    → git add -f raw.txt" in done.stderr
    assert "To see it whole: git datasets parse. " in done.stderr
    assert "git -c datasets.parseOnCommit=false commit" in done.stderr
    assert done.stderr.count("✗") == 1, "the same of two splits"
    assert (digests(repo), git(repo, "ls-files", "-s").stdout) == before

    git(repo, "-c", "datasets.parseOnCommit=false", "commit", "-qm", "rows all the same")
    assert is_clean(counted.machine, repo)
    counted.since()
    done = git(repo, "push", "origin", "main", check=False)
    assert done.returncode == 1
    assert "in an_input: FileNotFoundError" in done.stderr
    assert "git -c datasets.parseOnCommit=false push origin" in done.stderr
    assert counted.since() == ["preprocess", "input"]
    assert git(ready_origin(counted), "for-each-ref").stdout == ""
    git(repo, "-c", "datasets.parseOnCommit=false", "push", "-q", "origin", "main")

    counted.write("'raw.txt'", "'raw.csv'")
    done = git(repo, "commit", "-qm", "another file", "index.py", check=False)
    assert "To see it whole: git add index.py; git datasets parse. " in done.stderr, "nothing is staged then"


def ready_origin(counted: Counted) -> Path:
    return counted.machine.root / "origin.git"


def test_a_failing_ingest_says_what_to_do(counted: Counted) -> None:
    (counted.repo / "raw.txt").unlink()
    done = counted.machine.git(counted.repo, "commit", "-qm", "rows", check=False)
    assert "index.py:20, in load: FileNotFoundError" in done.stderr
    assert "the ingest load failed; nothing was changed" in done.stderr
    assert "mend the path, or add the file" in done.stderr


def test_a_neighbour_that_was_not_staged_is_named(counted: Counted) -> None:
    (counted.repo / "nearby.py").write_text("X = 1\n")
    counted.write("from pathlib", "import nearby\nfrom pathlib")
    counted.machine.git(counted.repo, "add", "index.py")
    done = counted.machine.git(counted.repo, "commit", "-qm", "rows", check=False)
    assert done.returncode == 1
    assert "index.py:1: no module named 'nearby'" in done.stderr
    assert "nearby.py is not in the commit" in done.stderr
    assert "→ git add nearby.py" in done.stderr
    assert "install it there" not in done.stderr


def test_what_others_committed_is_not_run_when_it_is_pushed_on(counted: Counted) -> None:
    machine, git, repo = counted.machine, counted.machine.git, counted.repo
    git(repo, "commit", "-qm", "rows")
    git(repo, "push", "-q", "origin", "main")
    git(machine.root, "clone", "-q", "origin.git", "mine")
    counted.write("[row.size]", "[row.size, 1]")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "push", "-q", "origin", "main")
    counted.since()
    mine = machine.root / "mine"
    git(mine, "pull", "-q")
    git(mine, "push", "-q", machine.bare("other.git"), "main")
    assert counted.since() == []
    assert tree(machine, machine.root / "other.git", "main")


def test_a_push_parses_what_no_commit_did(counted: Counted) -> None:
    git, repo = counted.machine.git, counted.repo
    git(repo, "-c", "datasets.parseOnCommit=false", "commit", "-qm", "rows")
    assert counted.since() == ["ingest", "transform", "transform"]
    done = git(repo, "push", "-q", "origin", "main")
    assert counted.since() == ["preprocess", "input"]
    assert "index.py: loads (" in done.stderr
    git(repo, "push", "-q", "origin", "main:other")
    assert counted.since() == []
    assert is_clean(counted.machine, repo)


def test_reconcile_leaves_the_parse_to_the_commit(counted: Counted) -> None:
    counted.machine.gd(counted.repo, "reconcile")
    assert counted.since() == ["ingest", "transform", "transform"]
    counted.machine.git(counted.repo, "commit", "-qm", "rows")
    assert counted.since() == ["preprocess", "input"]
    assert is_clean(counted.machine, counted.repo)
