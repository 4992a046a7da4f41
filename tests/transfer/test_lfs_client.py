"""Our side as the peer that asks, against an agent that is a few lines of Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gds_lfs.content.hashing import oid_of
from gds_lfs.errors import MissingObjectError, RemoteError
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer.lfs_client import Wanted, fetch, push
from gds_lfs.transfer.lfs_session import start

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
    with start(program, "upload", "origin", tmp_path) as agents:
        report = push(filled(tmp_path / "a", *CONTENTS), agents, wanted(*CONTENTS), tmp_path)
    assert (report.files, report.bytes_sent) == (2, sum(map(len, CONTENTS)))
    store = LocalStore(tmp_path / "b")
    with start(program, "download", "origin", tmp_path) as agents:
        found = fetch(store, agents, wanted(*CONTENTS, b"never sent"))
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
    with start(program, "download", "origin", tmp_path) as agents:
        found = fetch(store, agents, wanted(b"good"))
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
    with start(program, "download", "origin", tmp_path) as agents, pytest.raises(RemoteError, match=told):
        fetch(store, agents, wanted(b"four", b"fives", b"sixsix"))
    assert store.read(oid_of(b"sixsix")) == b"sixsix", "the others come all the same"


@pytest.mark.parametrize("code", [404, 410, 2, 6])
def test_what_the_agent_does_not_have_is_missing(program: str, tmp_path: Path, code: int) -> None:
    fault(tmp_path, b"four", code, "not here")
    with start(program, "download", "origin", tmp_path) as agents:
        assert fetch(LocalStore(tmp_path / "b"), agents, wanted(b"four")).missing == {oid_of(b"four"): "4.bin"}


def test_an_agent_that_names_no_file(program: str, tmp_path: Path) -> None:
    (tmp_path / "theirs/says-nothing").touch()
    with (
        start(program, "download", "origin", tmp_path) as agents,
        pytest.raises(RemoteError, match=r"4\.bin: the agent names no file"),
    ):
        fetch(LocalStore(tmp_path / "b"), agents, wanted(b"four"))


def test_nothing_is_sent_where_something_is_missing(program: str, tmp_path: Path) -> None:
    with start(program, "upload", "origin", tmp_path) as agents, pytest.raises(MissingObjectError, match=r"3\.bin"):
        push(filled(tmp_path / "a", b"abcd"), agents, wanted(b"abcd", b"abc"), tmp_path)
    assert "upload" not in (tmp_path / "theirs/log").read_text().splitlines()[1:]


def test_the_first_refusal_of_an_upload_ends_the_push(program: str, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    full = 'answer["error"] = {"code": 507, "message": "full"}'
    script.write_text(FOREIGN.replace('shutil.copy(m["path"], folder + "/" + m["oid"])', full))
    contents = [bytes([number]) * 100 for number in range(100)]
    with (
        start(program, "upload", "origin", tmp_path, 4) as agents,
        pytest.raises(RemoteError, match=r"full \(code 507"),
    ):
        push(filled(tmp_path / "a", *contents), agents, wanted(*contents), tmp_path)
    asked = (tmp_path / "theirs/log").read_text().count('"upload","oid"')
    assert asked < 50, "no new one is begun"


class Told:
    """Progress that a test looks at."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []

    def start(self, what: str, total_bytes: int, total_items: int) -> None:
        self.totals = (total_bytes, total_items)

    def advance(self, size: int, items: int) -> None:
        self.steps.append((size, items))

    def done(self) -> None:
        pass


def test_what_an_agent_says_of_its_progress_is_told(program: str, tmp_path: Path) -> None:
    told = Told()
    with start(program, "upload", "origin", tmp_path) as agents:
        push(filled(tmp_path / "a", b"abcd"), agents, wanted(b"abcd"), tmp_path, told)
    assert told.totals == (4, 1)
    assert told.steps[:2] == [(1, 0), (3, 1)], "what it says, and the rest at the end"


def test_progress_stays_within_the_object(program: str, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(FOREIGN.replace('"bytesSinceLast": 1', '"bytesSinceLast": 99'))
    told = Told()
    with start(program, "upload", "origin", tmp_path) as agents:
        push(filled(tmp_path / "a", b"abcd", b"abc"), agents, wanted(b"abcd", b"abc"), tmp_path, told)
    assert told.steps[:4] == [(4, 0), (0, 1), (3, 0), (0, 1)]
