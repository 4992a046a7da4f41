"""Conversations with an agent of somebody else's, one or several at a time."""

from __future__ import annotations

import io
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gds_lfs.errors import RemoteError
from gds_lfs.transfer.lfs_messages import Download, Upload
from gds_lfs.transfer.lfs_session import Agents, AgentSession, start

AGENT = """
import json, os, sys
log = open(sys.argv[1], "a")
for line in sys.stdin:
    m = json.loads(line)
    print(json.dumps({"pid": os.getpid()} | m), file=log, flush=True)
    if m["event"] == "terminate":
        break
    if m.get("oid") == "die":
        sys.exit(1)
    answer = {} if m["event"] == "init" else {"event": "complete", "oid": m["oid"]}
    if m["event"] == "init" and len(sys.argv) > 2:
        answer = {"error": {"code": 32, "message": "not today"}}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "agent.py").write_text(AGENT)
    return f"'{sys.executable}' '{tmp_path}/agent.py' '{tmp_path}/log'"


def said(tmp_path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


def unheard(_size: int) -> None:
    pass


def test_as_many_processes_as_are_spoken_with_at_once(program: str, tmp_path: Path) -> None:
    together = threading.Barrier(3)

    def speak(agents: Agents, number: int) -> None:
        with agents.session() as session:
            together.wait(20)
            session.ask(Upload(f"{number}", 1, "/x"), unheard)

    with start(program, "upload", "origin", tmp_path, 8) as agents, ThreadPoolExecutor(3) as threads:
        for _ in range(2):  # what is idle again is used again
            list(threads.map(lambda number: speak(agents, number), range(3)))
    messages = said(tmp_path)
    inits = [message for message in messages if message["event"] == "init"]
    assert len({message["pid"] for message in inits}) == len(inits) == 3
    assert {(message["concurrent"], message["concurrenttransfers"]) for message in inits} == {(True, 8)}
    assert [message["event"] for message in messages].count("terminate") == 3


def test_one_that_died_is_not_asked_again(program: str, tmp_path: Path) -> None:
    with start(program, "download", "origin", tmp_path, 2) as agents:
        with pytest.raises(RemoteError, match="ended in the middle"), agents.session() as session:
            session.ask(Download("die", 1), unheard)
        with agents.session() as session:
            session.ask(Download("b", 1), unheard)
    assert [message["event"] for message in said(tmp_path)] == ["init", "download", "init", "download", "terminate"]


def test_an_agent_that_cannot_start_or_will_not(program: str, tmp_path: Path) -> None:
    for bad in ("/nowhere/agent --x", "", "'"):
        with pytest.raises(RemoteError, match=r"datasets\.transferagent"), start(bad, "upload", "origin", tmp_path):
            pass
    with pytest.raises(RemoteError, match="not today"), start(program + " no", "upload", "origin", tmp_path):
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
        session.ask(Download("ab" * 32, 3), unheard)
