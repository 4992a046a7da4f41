"""Our side as the peer that asks, against an agent that is a few lines of Python."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from gds_lfs.content.hashing import oid_of
from gds_lfs.errors import MissingObjectError, RemoteError
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer.lfs_client import AgentSession, Wanted, fetch, push, start
from gds_lfs.transfer.lfs_messages import Download

FOREIGN = """
import json, os, shutil, sys
folder = sys.argv[1]
log = open(folder + "/log", "a")
for line in sys.stdin:
    print(line.strip(), file=log, flush=True)
    m = json.loads(line)
    answer = {"event": "complete", "oid": m.get("oid")}
    if m["event"] == "init":
        answer = {}
        if os.path.exists(folder + "/refuse"):
            answer = {"error": {"code": 32, "message": "not today"}}
    elif m["event"] == "upload":
        print(json.dumps({"event": "progress", "oid": m["oid"], "bytesSoFar": 1, "bytesSinceLast": 1}), flush=True)
        shutil.copy(m["path"], folder + "/" + m["oid"])
    elif m["event"] == "download":
        if os.path.exists(folder + "/" + m["oid"]):
            answer["path"] = folder + "/out-" + m["oid"]
            shutil.copy(folder + "/" + m["oid"], answer["path"])
        elif os.path.exists(folder + "/says-" + m["oid"]):
            answer["error"] = json.load(open(folder + "/says-" + m["oid"]))
        elif os.path.exists(folder + "/says-nothing"):
            pass
        else:
            answer["error"] = {"code": 2, "message": "no such object"}
    else:
        break
    print(json.dumps(answer), flush=True)
"""
CONTENTS = [b"one" * 1000, b"two" * 100_000]


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "agent.py").write_text(FOREIGN)
    (tmp_path / "theirs").mkdir()
    return f"{sys.executable} '{tmp_path}/agent.py' '{tmp_path}/theirs'"


def wanted(*contents: bytes) -> dict[bytes, Wanted]:
    return {oid_of(content): Wanted(len(content), f"{len(content)}.bin") for content in contents}


def filled(folder: Path, *contents: bytes) -> LocalStore:
    store = LocalStore(folder)
    with store.writer(framed=True) as writer:
        for content in contents:
            writer.add_bytes(content)
    return store


def test_there_and_back(program: str, tmp_path: Path) -> None:
    with start(program, "upload", "origin", tmp_path) as session:
        report = push(filled(tmp_path / "a", *CONTENTS), session, wanted(*CONTENTS), tmp_path)
    assert (report.files, report.bytes_sent) == (2, sum(map(len, CONTENTS)))
    store = LocalStore(tmp_path / "b")
    with start(program, "download", "origin", tmp_path) as session:
        found = fetch(store, session, wanted(*CONTENTS, b"never sent"))
    assert found.fetched == {oid_of(content) for content in CONTENTS}
    assert found.missing == {oid_of(b"never sent"): "10.bin"}
    assert [store.read(oid_of(content)) for content in CONTENTS] == CONTENTS
    assert not list((tmp_path / "theirs").glob("out-*")), "what was handed over is ours to remove"
    said = [json.loads(line) for line in (tmp_path / "theirs/log").read_text().splitlines()]
    assert [message["event"] for message in said] == [
        "init", "upload", "upload", "terminate", "init", "download", "download", "download", "terminate",
    ]  # fmt: skip
    assert said[0] == {
        "event": "init", "operation": "upload", "remote": "origin", "concurrent": False, "concurrenttransfers": 1,
    }  # fmt: skip
    assert said[5]["size"] == len(CONTENTS[0])
    assert said[5]["action"] is None


def test_what_is_not_what_it_is_named_for_is_not_taken(program: str, tmp_path: Path) -> None:
    (tmp_path / "theirs" / oid_of(b"good").hex()).write_bytes(b"bad!")
    store = LocalStore(tmp_path / "b")
    with start(program, "download", "origin", tmp_path) as session:
        found = fetch(store, session, wanted(b"good"))
    assert found.damaged == {oid_of(b"good"): "4.bin"}
    assert not store.has(oid_of(b"good"))


def fault(folder: Path, content: bytes, code: int, message: str) -> None:
    (folder / f"theirs/says-{oid_of(content).hex()}").write_text(json.dumps({"code": code, "message": message}))


def test_what_the_agent_says_of_a_failure_reaches_the_user(program: str, tmp_path: Path) -> None:
    fault(tmp_path, b"four", 401, "your login has expired: run acme login")
    fault(tmp_path, b"fives", 500, "a crash")
    (tmp_path / "theirs" / oid_of(b"sixsix").hex()).write_bytes(b"sixsix")
    store = LocalStore(tmp_path / "b")
    told = r"^4\.bin: the agent says: your login has expired: run acme login \(code 401\) \(and 1 more\)$"
    with start(program, "download", "origin", tmp_path) as session, pytest.raises(RemoteError, match=told):
        fetch(store, session, wanted(b"four", b"fives", b"sixsix"))
    assert store.read(oid_of(b"sixsix")) == b"sixsix", "the others come all the same"


@pytest.mark.parametrize("code", [404, 410, 2, 6])
def test_what_the_agent_does_not_have_is_missing(program: str, tmp_path: Path, code: int) -> None:
    fault(tmp_path, b"four", code, "not here")
    with start(program, "download", "origin", tmp_path) as session:
        assert fetch(LocalStore(tmp_path / "b"), session, wanted(b"four")).missing == {oid_of(b"four"): "4.bin"}


def test_an_agent_that_names_no_file(program: str, tmp_path: Path) -> None:
    (tmp_path / "theirs/says-nothing").touch()
    with (
        start(program, "download", "origin", tmp_path) as session,
        pytest.raises(RemoteError, match=r"4\.bin: the agent names no file"),
    ):
        fetch(LocalStore(tmp_path / "b"), session, wanted(b"four"))


def test_nothing_is_sent_where_something_is_missing(program: str, tmp_path: Path) -> None:
    with start(program, "upload", "origin", tmp_path) as session, pytest.raises(MissingObjectError, match=r"3\.bin"):
        push(filled(tmp_path / "a", b"abcd"), session, wanted(b"abcd", b"abc"), tmp_path)
    assert "upload" not in (tmp_path / "theirs/log").read_text().splitlines()[1:]


def test_an_agent_that_cannot_start_or_will_not(program: str, tmp_path: Path) -> None:
    for bad in ("/nowhere/agent --x", "", "'"):
        with pytest.raises(RemoteError, match=r"datasets\.transferagent"), start(bad, "upload", "origin", tmp_path):
            pass
    (tmp_path / "theirs/refuse").touch()
    with pytest.raises(RemoteError, match="not today"), start(program, "upload", "origin", tmp_path):
        pass


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"", "ended in the middle"),
        (b"half a li", "ended in the middle"),
        (b"Hello!\n", "no message"),
        (b'{"event":"complete","oid":"other"}\n', "speaks of 'other'"),
    ],
)
def test_an_agent_that_breaks_the_protocol(answer: bytes, complaint: str) -> None:
    session = AgentSession("agent", io.BytesIO(), io.BytesIO(answer))
    with pytest.raises(RemoteError, match=complaint):
        list(session.ask(Download("ab" * 32, 3)))
