"""What the agent answers, and when: conversations scripted line by line, without processes or data."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO
from unittest.mock import ANY

import pytest

from gds_lfs.errors import GitDatasetsError, MissingObjectError, RemoteError
from gds_lfs.transfer import conversation
from gds_lfs.transfer.agent import Agent
from gds_lfs.transfer.agent_loop import serve, serve_all
from gds_lfs.transfer.conversation import State
from gds_lfs.transfer.greeting import Greeting
from gds_lfs.transfer.queue import Progress

OIDS = [f"{number:02x}" * 32 for number in range(20)]


class Boxes:
    """Stands in for both directions; remembers what was asked of it in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.batch = 100
        self.size = 0
        self.there: set[bytes] = set()
        self.here: set[bytes] = set()
        self.add_error: Exception | None = None
        self.left = 0
        self.flush_error: Exception | None = None
        self.fetch_error: Exception | None = None
        self.move: Callable[[Progress], None] = lambda progress: None

    def uploads(self, remote: str) -> Boxes:
        self.log.append(f"to {remote}")
        return self

    downloads = uploads

    def report(self, error: BaseException) -> str:
        return f"reported {error}"

    def add(self, oid: bytes, size: int, path: str, advance: object) -> bool:
        print("something that must not reach the protocol")
        if self.add_error:
            raise self.add_error
        self.log.append(f"add {oid.hex()[:2]}")
        self.size += size
        return oid not in self.there

    def work(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def flush(self) -> None:
        self.log.append("flush")
        self.size = 0
        if self.flush_error:
            raise self.flush_error

    def at_hand(self, oid: bytes) -> bool:
        return oid in self.here

    def fetch(self, wanted: list[bytes], progress: Progress) -> dict[bytes, Path | GitDatasetsError]:
        self.move(progress)
        self.log.append("fetch " + " ".join(oid.hex()[:2] for oid in wanted))
        if self.fetch_error:
            raise self.fetch_error
        lost = MissingObjectError("not there")
        return {oid: lost if oid in self.there else Path("/tmp") / oid.hex()[:2] for oid in wanted}


class Peer:
    """git-lfs's side of one conversation."""

    def __init__(self, agent: Agent, operation: str = "upload") -> None:
        self.agent = agent
        self.heard: list[dict[str, object]] = []
        self.conversation = agent.join(lambda data: self.heard.extend(map(json.loads, data.splitlines())))
        self.say(event="init", operation=operation, remote="origin", concurrent=True, concurrenttransfers=3)
        assert self.heard == [{}]

    def say(self, **message: object) -> None:
        self.agent.receive(self.conversation, json.dumps(message).encode() + b"\n")

    def upload(self, oid: str, size: int = 5) -> None:
        self.say(event="upload", oid=oid, size=size, path="/p", action=None)

    def download(self, oid: str, size: int = 5) -> None:
        self.say(event="download", oid=oid, size=size, action=None)

    def progress(self) -> list[tuple[object, object, object]]:
        return [(m["oid"], m["bytesSoFar"], m["bytesSinceLast"]) for m in self.heard if m.get("event") == "progress"]

    def completed(self) -> list[str]:
        return [str(m["oid"])[:2] for m in self.heard if m.get("event") == "complete" and "error" not in m]

    def errors(self) -> list[dict[str, object]]:
        return [m["error"] for m in self.heard if "error" in m]  # type: ignore[misc]


@pytest.fixture
def boxes() -> Boxes:
    return Boxes()


def session(boxes: Boxes, *messages: dict[str, object] | bytes) -> list[dict[str, object]]:
    """What a lone agent writes to stdout for a whole stdin; every line must be JSON."""
    lines = [m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages]
    stdout = io.BytesIO()
    greeting = Greeting(lines[0] if lines else b"")
    serve(Agent(boxes), io.BytesIO(b"".join(lines[1:])), stdout, greeting)
    return [json.loads(line) for line in stdout.getvalue().splitlines()]


INIT = {"event": "init", "operation": "upload", "remote": "origin", "concurrent": False, "concurrenttransfers": 3}
TERMINATE = {"event": "terminate"}
GREETING = Greeting(json.dumps(INIT).encode() + b"\n")


def test_a_lone_agent_sends_each_object_before_it_answers(boxes: Boxes) -> None:
    uploads = [{"event": "upload", "oid": oid, "size": 5, "path": "/p", "action": None} for oid in OIDS[:3]]
    heard = session(boxes, INIT, *uploads, TERMINATE)
    assert boxes.log == ["to origin", "add 00", "flush", "add 01", "flush", "add 02", "flush"]
    assert heard[0] == {}
    assert [m["oid"] for m in heard if m.get("event") == "complete"] == OIDS[:3]
    progress = [m for m in heard if m.get("event") == "progress"]
    assert [(m["oid"], m["bytesSoFar"], m["bytesSinceLast"]) for m in progress] == [(oid, 5, 5) for oid in OIDS[:3]]


def test_terminate_straight_after_init(boxes: Boxes) -> None:
    assert session(boxes, INIT, TERMINATE) == [{}]
    assert session(boxes, TERMINATE) == []


def test_stdin_may_close_anywhere(boxes: Boxes) -> None:
    assert session(boxes) == []
    assert session(boxes, INIT) == [{}]
    assert session(boxes, INIT, b'{"event":"upl') == [
        {},
        {"event": "complete", "oid": "", "error": {"code": 1, "message": session_error(boxes)}},
    ]


def session_error(boxes: Boxes) -> str:
    return str(session(boxes, INIT, b'{"event":"upl')[1]["error"]["message"])  # type: ignore[index]


def test_a_lone_download_is_answered_at_once(boxes: Boxes) -> None:
    init = {**INIT, "operation": "download"}
    heard = session(boxes, init, {"event": "download", "oid": OIDS[1], "size": 5, "action": {"href": "x"}}, TERMINATE)
    assert heard[-1] == {"event": "complete", "oid": OIDS[1], "path": "/tmp/01"}


def test_messages_out_of_place_are_answered(boxes: Boxes) -> None:
    early = session(boxes, {"event": "upload", "oid": OIDS[0], "size": 1, "path": "/p"})
    assert early[0]["error"]["code"] == 1  # type: ignore[index]
    agent = Agent(boxes)
    peer = Peer(agent)
    peer.say(**INIT)
    peer.upload("zz")
    peer.say(event="upload", oid=OIDS[1])
    assert [error["code"] for error in peer.errors()] == [1, 1, 1]
    assert peer.heard[-1]["oid"] == OIDS[1]
    peer.upload(OIDS[2])
    assert peer.completed() == ["02"], "the conversation goes on"


@pytest.mark.parametrize(("operation", "other"), [("upload", "download"), ("download", "upload")])
def test_a_request_of_the_other_direction_is_refused(boxes: Boxes, operation: str, other: str) -> None:
    peer = Peer(Agent(boxes), operation)
    getattr(peer, other)(OIDS[0])
    assert [m["oid"] for m in peer.heard[1:]] == [OIDS[0]]
    assert peer.errors() == [{"code": 1, "message": f"{other} is out of place: init said {operation}"}]
    assert boxes.log == ["to origin"], "nothing moved"
    getattr(peer, operation)(OIDS[1])
    assert peer.completed() == ["01"]


def test_an_init_that_was_answered_by_its_looks_and_is_none_is_told_to_the_requests(boxes: Boxes) -> None:
    stdout = io.BytesIO()
    upload = json.dumps({"event": "upload", "oid": OIDS[0], "size": 5, "path": "/p"}).encode() + b"\n"
    bad = Greeting(b'{"event":"init","operation":"upload",}\n', answered=True)
    serve(Agent(boxes), io.BytesIO(upload), stdout, bad)
    (answer,) = map(json.loads, stdout.getvalue().splitlines())
    assert answer["oid"] == OIDS[0]
    assert "no message of the transfer protocol" in answer["error"]["message"]


def test_a_request_before_init_is_answered_as_a_request(boxes: Boxes) -> None:
    (answer,) = session(boxes, {"event": "upload", "oid": OIDS[0], "size": 1, "path": "/p"})
    assert answer["event"] == "complete"
    assert answer["oid"] == OIDS[0]
    assert session(boxes, b'{"event":"init"\n') == [{"error": ANY}]


def test_an_unknown_operation_is_refused_at_init(boxes: Boxes) -> None:
    assert "sideload" in session(boxes, {**INIT, "operation": "sideload"})[0]["error"]["message"]  # type: ignore[index]


def test_an_init_that_has_its_answer_gets_no_other(boxes: Boxes) -> None:
    stdout = io.BytesIO()
    upload = json.dumps({"event": "upload", "oid": OIDS[0], "size": 5, "path": "/p"}).encode() + b"\n"
    serve(Agent(boxes), io.BytesIO(upload), stdout, GREETING._replace(answered=True))
    assert [json.loads(line)["event"] for line in stdout.getvalue().splitlines()] == ["progress", "complete"]


def test_what_was_put_off_is_done_when_nobody_asks(boxes: Boxes) -> None:
    agent = Agent(boxes)
    assert agent.work() is False, "before the first request"
    Peer(agent).upload(OIDS[0])
    boxes.left = 2
    assert [agent.work() for _ in range(3)] == [True, True, False]


def test_one_is_held_until_all_that_was_gathered_is_sent(boxes: Boxes) -> None:
    agent = Agent(boxes)
    first, second, third = (Peer(agent) for _ in range(3))
    first.upload(OIDS[0])
    assert first.completed() == []
    assert first.heard[-1]["event"] == "progress", "or git-lfs would not let the others begin"
    for oid in OIDS[1:7]:
        second.upload(oid)
        third.upload(oid)
    assert len(second.completed()) == len(third.completed()) == 6
    assert "flush" not in boxes.log
    assert agent.waits
    agent.pause()
    assert first.completed() == ["00"]
    assert boxes.log[-1] == "flush"
    assert not agent.waits


def test_a_batch_of_git_lfs_needs_no_pause(boxes: Boxes) -> None:
    boxes.batch = 4
    agent = Agent(boxes)
    first, second = Peer(agent), Peer(agent)
    first.upload(OIDS[0])
    for oid in OIDS[1:4]:
        second.upload(oid)
    assert boxes.log.count("flush") == 1
    assert first.completed() == ["00"]


def test_a_git_lfs_that_hands_out_fewer_than_it_was_told_is_waited_for_once(boxes: Boxes) -> None:
    boxes.batch = 1000
    agent = Agent(boxes)
    first, second = Peer(agent), Peer(agent)
    oids = [f"{number:064x}" for number in range(200)]
    for start in (0, 100):
        first.upload(oids[start])
        for oid in oids[start + 1 : start + 100]:
            second.upload(oid)
        if start == 0:
            assert agent.waits
            agent.pause()
        assert not agent.waits
    assert boxes.log.count("flush") == 2


def test_enough_bytes_are_sent_without_waiting_for_more(boxes: Boxes) -> None:
    agent = Agent(boxes)
    first, second = Peer(agent), Peer(agent)
    first.upload(OIDS[0])
    second.upload(OIDS[1], 1 << 30)
    assert first.completed() == ["00"]


def test_what_the_remote_has_is_answered_at_once_and_holds_nobody(boxes: Boxes) -> None:
    agent = Agent(boxes)
    boxes.there.add(bytes.fromhex(OIDS[0]))
    first, _ = Peer(agent), Peer(agent)
    first.upload(OIDS[0])
    assert first.completed() == ["00"]
    assert not agent.waits


def test_when_sending_fails_the_held_one_fails(boxes: Boxes) -> None:
    agent = Agent(boxes)
    boxes.flush_error = RemoteError("the remote is down")
    first, second = Peer(agent), Peer(agent)
    first.upload(OIDS[0])
    second.upload(OIDS[1])
    agent.pause()
    assert first.completed() == []
    assert first.errors() == [{"code": 8, "message": "the remote is down"}]


def test_a_held_one_that_is_gone_vouches_for_nothing(boxes: Boxes) -> None:
    agent = Agent(boxes)
    first, second, third = (Peer(agent) for _ in range(3))
    first.upload(OIDS[0])
    second.upload(OIDS[1])
    agent.leave(first.conversation)
    second.upload(OIDS[2])
    assert second.completed() == ["01"], "the next one is held in its place"
    third.upload(OIDS[3])
    agent.pause()
    assert second.completed() == ["01", "02"]


def test_an_object_that_cannot_be_read_fails_alone(boxes: Boxes) -> None:
    agent = Agent(boxes)
    first, second = Peer(agent), Peer(agent)
    boxes.add_error = MissingObjectError("it is gone")
    first.upload(OIDS[0])
    assert first.errors() == [{"code": 6, "message": "it is gone"}]
    boxes.add_error = ZeroDivisionError("a mistake")
    first.upload(OIDS[1])
    assert first.errors()[-1] == {"code": 1, "message": "reported a mistake"}
    boxes.add_error = None
    second.upload(OIDS[2])
    agent.pause()
    assert second.completed() == ["02"]


def test_downloads_asked_for_together_are_fetched_together(boxes: Boxes) -> None:
    agent = Agent(boxes)
    first, second, _ = (Peer(agent, "download") for _ in range(3))
    first.download(OIDS[0])
    second.download(OIDS[1])
    assert first.completed() == []
    agent.pause()
    assert boxes.log[-1] == "fetch 00 01"
    assert first.completed() == ["00"]
    assert second.heard[-1] == {"event": "complete", "oid": OIDS[1], "path": "/tmp/01"}


def test_when_everybody_waits_there_is_nothing_to_wait_for(boxes: Boxes) -> None:
    agent = Agent(boxes)
    first, second = Peer(agent, "download"), Peer(agent, "download")
    first.download(OIDS[0])
    second.download(OIDS[1])
    assert boxes.log[-1] == "fetch 00 01"
    boxes.here.add(bytes.fromhex(OIDS[2]))
    first.download(OIDS[2])
    assert boxes.log[-1] == "fetch 02"


def test_a_missing_download_fails_alone_and_a_down_remote_fails_all(boxes: Boxes) -> None:
    agent = Agent(boxes)
    boxes.there.add(bytes.fromhex(OIDS[0]))
    first, second = Peer(agent, "download"), Peer(agent, "download")
    first.download(OIDS[0])
    second.download(OIDS[1])
    assert first.errors() == [{"code": 6, "message": "not there"}]
    assert second.completed() == ["01"]
    boxes.fetch_error = RemoteError("down")
    first.download(OIDS[2])
    second.download(OIDS[3])
    assert first.errors()[-1] == second.errors()[-1] == {"code": 8, "message": "down"}


def test_a_download_tells_how_far_it_is(boxes: Boxes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "STEP", 0)

    def move(progress: Progress) -> None:
        progress.start("Downloading", 400, 2)
        progress.advance(100, 0)
        progress.advance(0, 0)
        progress.advance(100, 1)
        progress.start("Downloading", 50, 1)  # of what was damaged here
        progress.advance(20, 0)
        progress.advance(30, 1)
        progress.done()

    boxes.move = move
    agent = Agent(boxes)
    first, second, third = (Peer(agent, "download") for _ in range(3))
    first.download(OIDS[0], 1000)
    second.download(OIDS[1], 10)
    third.download(OIDS[2], 0)
    assert first.progress() == [(OIDS[0], 250, 250), (OIDS[0], 500, 250), (OIDS[0], 999, 499), (OIDS[0], 1000, 1)]
    assert second.progress() == [(OIDS[1], 2, 2), (OIDS[1], 5, 3), (OIDS[1], 9, 4), (OIDS[1], 10, 1)]
    assert third.progress() == []
    assert first.heard[-1] == {"event": "complete", "oid": OIDS[0], "path": "/tmp/00"}


def test_a_download_of_many_steps_says_few_words(boxes: Boxes) -> None:
    def move(progress: Progress) -> None:
        progress.start("Downloading", 10_000, 1)
        for _ in range(10_000):
            progress.advance(1, 0)

    boxes.move = move
    peer = Peer(Agent(boxes), "download")
    peer.download(OIDS[0], 1 << 30)
    assert 2 <= len(peer.progress()) < 100


def test_whether_git_lfs_was_interrupted(boxes: Boxes) -> None:
    agent = Agent(boxes)
    first, second = Peer(agent), Peer(agent)
    first.say(**TERMINATE)
    agent.leave(first.conversation)
    assert not agent.interrupted
    agent.leave(second.conversation)
    assert agent.interrupted


def test_an_empty_object_has_no_progress(boxes: Boxes) -> None:
    agent = Agent(boxes)
    peer = Peer(agent)
    peer.upload(OIDS[0], 0)
    assert [m.get("event") for m in peer.heard[1:]] == ["complete"]
    assert peer.conversation.state is State.READY


class Silent:
    """A meeting that nobody comes to."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def fileno(self) -> int:
        return self.reader

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


@pytest.fixture
def silent() -> Iterator[Silent]:
    meeting = Silent()
    yield meeting
    meeting.close()


def never() -> None:
    raise AssertionError("nobody was busy when the other side went")


def test_the_loop_over_pipes_ends_a_batch_when_nothing_more_comes(boxes: Boxes, silent: Silent) -> None:
    asked, say = os.pipe()
    hear, answered = os.pipe()
    agent = Agent(boxes)
    other = Peer(agent)
    loop = threading.Thread(target=serve_all, args=(agent, (asked, answered), GREETING, silent, never))
    loop.start()
    with os.fdopen(hear, "rb") as lines:
        talk(say, lines)
    loop.join(5)
    os.close(say)
    assert not loop.is_alive()
    assert other.completed() == []


def talk(say: int, lines: BinaryIO) -> None:
    assert json.loads(lines.readline()) == {}
    os.write(say, json.dumps({"event": "upload", "oid": OIDS[0], "size": 5, "path": "/p"}).encode() + b"\n")
    assert json.loads(lines.readline())["event"] == "progress"
    assert json.loads(lines.readline())["event"] == "complete"
    os.write(say, b'{"event":"termi')
    os.write(say, b'nate"}\n')
    assert lines.read() == b""


def test_the_loop_ends_when_git_lfs_is_gone(boxes: Boxes, silent: Silent) -> None:
    asked, say = os.pipe()
    hear, answered = os.pipe()
    os.close(hear)
    loop = threading.Thread(target=serve_all, args=(Agent(boxes), (asked, answered), GREETING, silent, never))
    loop.start()
    os.close(say)
    loop.join(5)
    assert not loop.is_alive()


@pytest.fixture
def stalled(boxes: Boxes) -> Iterator[threading.Event]:
    """A flush does not end before this is set."""
    going = threading.Event()
    boxes.flush = lambda: going.wait(10)  # type: ignore[method-assign, assignment, return-value]
    yield going
    going.set()


def upload_of(oid: str) -> bytes:
    return json.dumps({"event": "upload", "oid": oid, "size": 5, "path": "/p"}).encode() + b"\n"


def test_the_loop_tells_that_all_have_gone_while_it_is_busy(boxes: Boxes, stalled: threading.Event) -> None:
    asked, say = os.pipe()
    hear, answered = os.pipe()
    told = threading.Event()
    loop = threading.Thread(target=serve_all, args=(Agent(boxes), (asked, answered), GREETING, None, told.set))
    loop.start()
    os.write(say, upload_of(OIDS[0]))
    assert not told.wait(1), "git-lfs waits for an answer"
    began = time.monotonic()
    os.close(say)
    assert told.wait(1)
    assert time.monotonic() - began < 1
    stalled.set()
    loop.join(5)
    assert not loop.is_alive()
    os.close(hear)


def test_who_has_said_all_in_advance_is_served_to_the_end(boxes: Boxes, stalled: threading.Event) -> None:
    asked, say = os.pipe()
    hear, answered = os.pipe()
    loop = threading.Thread(target=serve_all, args=(Agent(boxes), (asked, answered), GREETING, None, never))
    loop.start()
    os.write(say, upload_of(OIDS[0]) + upload_of(OIDS[1]) + b'{"event":"terminate"}\n')
    os.close(say)
    time.sleep(1)
    stalled.set()
    with os.fdopen(hear, "rb") as lines:
        said = [json.loads(line) for line in lines]
    assert [m["oid"] for m in said if m.get("event") == "complete"] == OIDS[:2]
    loop.join(5)


def test_who_hears_nothing_any_more_is_gone_whatever_was_said(boxes: Boxes, stalled: threading.Event) -> None:
    asked, say = os.pipe()
    hear, answered = os.pipe()
    told = threading.Event()
    loop = threading.Thread(target=serve_all, args=(Agent(boxes), (asked, answered), GREETING, None, told.set))
    loop.start()
    os.write(say, upload_of(OIDS[0]) + b'{"event":"terminate"}\n')
    os.close(hear)
    os.close(say)
    assert told.wait(2)
    stalled.set()
    loop.join(5)
