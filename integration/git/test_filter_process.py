"""Real git drives the filter protocol, with a filter that stores content in upper case between marks."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FILTER = """\
import os, sys
sys.path.insert(0, os.environ["FILTER_PATH"])
from gds_lfs.git.filter_process import DELAYED, FilterError, serve

class Handler:
    def __init__(self):
        self.delayed = {}

    def clean(self, request, read):
        pieces = []
        while piece := read(1000):
            pieces.append(piece)
        if b"refuse" in pieces:
            raise FilterError("refused")
        log("clean", request)
        return (b"<" + piece.upper() + b">" for piece in [b"".join(pieces)])

    def smudge(self, request, content):
        log("smudge", request)
        if request.pathname in self.delayed:
            return self.delayed.pop(request.pathname)
        if b"BROKEN" in content:
            raise FilterError("broken")
        if request.can_delay:
            self.delayed[request.pathname] = content[1:-1].lower()
            return DELAYED
        return content[1:-1].lower()

    def available(self):
        return list(self.delayed)

    def answered(self):
        pass

def log(what, request):
    with open(os.environ["FILTER_LOG"], "a") as file:
        print(what, repr(request.pathname), request.can_delay, request.treeish is not None, file=file)

serve(sys.stdin.buffer.raw, sys.stdout.buffer, Handler())
"""
NAMES = [b"a b", b" lead", b"new\nline", b"tab\t", b'q"', b"per%f", b"back\\slash", b"\xff\xfe", b"-dash", b"line\n"]


@pytest.fixture
def log(tmp_path, monkeypatch, git, home) -> Path:
    (tmp_path / "filter.py").write_text(FILTER)
    monkeypatch.setenv("FILTER_PATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("FILTER_LOG", str(tmp_path / "log"))
    command = shlex.join([sys.executable, str(tmp_path / "filter.py")])
    git("config", "--global", "filter.datasets.process", command, cwd=tmp_path)
    git("config", "--global", "filter.datasets.required", "true", cwd=tmp_path)
    return tmp_path / "log"


@pytest.fixture
def data(top, log) -> Path:
    (top / ".gitattributes").write_text("data/** filter=datasets -text\n")
    (top / "data").mkdir()
    return top / "data"


def put(folder: Path, name: bytes, content: bytes) -> None:
    Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(content)


def test_round_trip_with_awkward_names_and_delays(data, top, git, log, tmp_path):
    large = bytes(range(256)).lower() * 1000
    for name in NAMES:
        put(data, name, b"content of " + name.lower())
    put(data, b"large", large)
    put(data, b"empty", b"")
    git("add", ".")
    assert git("show", ":data/a b") == "<CONTENT OF A B>"
    git("commit", "-q", "-m", "x")
    assert git("status", "--porcelain") == ""
    log.unlink()
    git("clone", "-q", str(top), "c", cwd=tmp_path)
    for name in NAMES:
        path = os.path.join(os.fsencode(tmp_path / "c" / "data"), name)
        assert Path(os.fsdecode(path)).read_bytes() == b"content of " + name.lower()
    assert (tmp_path / "c" / "data" / "large").read_bytes() == large.upper().lower()
    asked = log.read_text().splitlines()
    assert git("status", "--porcelain", cwd=tmp_path / "c") == ""
    assert len([line for line in asked if "True True" in line]) == len(NAMES) + 2
    assert {line.split(" ", 1)[0] for line in asked} == {"smudge"}


def test_a_refused_file_is_named_and_not_added(data, top, git):
    put(data, b"good", b"x")
    put(data, b"bad", b"refuse")
    result = subprocess.run(["git", "add", "."], cwd=top, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "git datasets: data/bad: refused" in result.stderr
    assert git("ls-files") == ""


def test_one_broken_file_fails_alone(data, top, git):
    put(data, b"a", b"one")
    put(data, b"b", b"broken")
    put(data, b"c", b"three")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    for name in "abc":
        (data / name).unlink()
    git("config", "filter.datasets.required", "false")  # else git stops at the first failure
    result = subprocess.run(["git", "checkout", "."], cwd=top, capture_output=True, text=True, check=True)
    assert "git datasets: data/b: broken" in result.stderr
    assert (data / "a").read_text() == "one"
    assert (data / "b").read_text() == "<BROKEN>"
    assert (data / "c").read_text() == "three"


def test_one_process_for_a_thousand_files(data, git, log):
    for number in range(1000):
        put(data, b"%d" % number, b"x%d" % number)
    git("add", ".")
    assert len(log.read_text().splitlines()) == 1000
