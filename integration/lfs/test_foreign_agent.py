"""`datasets.transferagent`: our push, fetch and smudge through an agent that is not ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from machines import Machine, digests

AGENT = """
import json, os, shutil, sys
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "theirs")
os.makedirs(folder, exist_ok=True)
for line in sys.stdin:
    m = json.loads(line)
    answer = {"event": "complete", "oid": m.get("oid")}
    if m["event"] == "init":
        answer = {}
    elif m["event"] == "upload":
        shutil.copy(m["path"], os.path.join(folder, m["oid"]))
    elif m["event"] == "download":
        source = os.path.join(folder, m["oid"])
        if os.path.exists(source):
            assert os.path.getsize(source) == m["size"]
            answer["path"] = source + ".out"
            shutil.copy(source, answer["path"])
        else:
            answer["error"] = {"code": 2, "message": "no such object"}
    else:
        break
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def agent(ready: Machine) -> str:
    (ready.root / "agent.py").write_text(AGENT)
    program = f"'{sys.executable}' '{ready.root}/agent.py'"
    ready.git(ready.root, "config", "--global", "datasets.transferagent", program)
    return program


def test_push_clone_and_fetch(ready: Machine, work: Path, agent: str) -> None:
    for name in ("a.bin", "b.bin"):
        (work / name).write_bytes(os.urandom(200_000))
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "two")
    ready.git(work, "push", "-q", "-u", "origin", "main")
    assert len(list((ready.root / "theirs").iterdir())) == 2
    assert not (ready.root / "data").exists(), "the agent stands in the remote's place"
    ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    assert digests(ready.root / "clone") == digests(work)
    ready.git(ready.root, "clone", "-q", "origin.git", "later", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    ready.gd(ready.root / "later", "pull")
    assert digests(ready.root / "later") == digests(work)


def test_as_many_at_once_as_git_lfs_would_ask_for(ready: Machine, work: Path, agent: str) -> None:
    slow = AGENT.replace("for line in sys.stdin:", "for line in sys.stdin:\n    time.sleep(0.3)")
    mark = "import os, time\nopen(f'{__file__}.{os.getpid()}', 'w').close()\n"
    (ready.root / "agent.py").write_text(mark + slow)
    ready.git(work, "config", "lfs.concurrenttransfers", "3")
    for number in range(9):
        (work / f"{number}.bin").write_bytes(os.urandom(2000))
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "nine")
    ready.git(work, "push", "-q", "-u", "origin", "main")
    assert len(list(ready.root.glob("agent.py.*"))) == 3
    assert len(list((ready.root / "theirs").iterdir())) == 9


def test_a_later_push_hands_over_what_is_new(ready: Machine, work: Path, agent: str) -> None:
    for name in ("a.bin", "b.bin"):
        (work / name).write_bytes(os.urandom(2000))
        ready.git(work, "add", ".")
        ready.git(work, "commit", "-qm", name)
        ready.git(work, "push", "-q", "-u", "origin", "main")
    first, second = sorted((ready.root / "theirs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    first.unlink()
    (work / "c.bin").write_bytes(os.urandom(2000))
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "c")
    ready.git(work, "push", "-q", "origin", "main")
    assert second.exists()
    assert len(list((ready.root / "theirs").iterdir())) == 2, "b.bin's and c.bin's"
    ready.gd(work, "push")
    assert len(list((ready.root / "theirs").iterdir())) == 3, "by hand all of it"


def test_what_the_agent_has_not_is_named(ready: Machine, work: Path, agent: str) -> None:
    (work / "a.bin").write_bytes(os.urandom(2000))
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "one")
    ready.git(work, "push", "-q", "--no-verify", "origin", "main")
    cloned = ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    assert "a.bin" in cloned.stderr
    assert ready.gd(ready.root / "clone", "fetch", "--all", check=False).returncode == 6


def test_what_the_agent_says_is_shown(ready: Machine, work: Path, agent: str) -> None:
    (work / "a.bin").write_bytes(os.urandom(2000))
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "one")
    ready.git(work, "push", "-q", "--no-verify", "origin", "main")
    script = ready.root / "agent.py"
    script.write_text(AGENT.replace('"code": 2, "message": "no such object"', '"code": 401, "message": "acme login"'))
    cloned = ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    assert "a.bin: the agent says: acme login (code 401)" in cloned.stderr
    for verb in ("fetch", "pull"):
        failed = ready.gd(ready.root / "clone", verb, check=False)
        assert failed.returncode == 8
        assert "a.bin: the agent says: acme login (code 401)" in failed.stderr
        assert "not on the dataset remote" not in failed.stderr


def test_an_agent_that_is_not_there_stops_the_push(ready: Machine, work: Path) -> None:
    ready.git(work, "config", "datasets.transferagent", "/nowhere/agent")
    (work / "a.bin").write_bytes(os.urandom(2000))
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "one")
    refused = ready.git(work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "datasets.transferagent" in refused.stderr


def test_a_tracked_file_names_no_program(ready: Machine, work: Path) -> None:
    marker = ready.root / "ran"
    with (work / ".datasetsconfig").open("a") as config:
        config.write(f'[datasets]\n\ttransferagent = "touch {marker}"\n')
    (work / "a.bin").write_bytes(os.urandom(2000))
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "one")
    ready.git(work, "push", "-q", "origin", "main")
    assert not marker.exists()
    assert (ready.root / "data").exists()


def test_our_own_agent_is_one_too(ready: Machine, work: Path) -> None:
    """Both sides of the protocol meet: push through git-datasets-agent, as git-lfs would."""
    from .conftest import AGENT as OURS

    ready.git(work, "config", "datasets.transferagent", str(OURS))
    (work / "a.bin").write_bytes(os.urandom(300_000))
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "one")
    ready.git(work, "push", "-q", "-u", "origin", "main")
    assert list((ready.root / "data").rglob("*.pack"))
    ready.git(work, "config", "--unset", "datasets.transferagent")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    assert digests(ready.root / "clone") == digests(work)
