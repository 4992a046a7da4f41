"""git-lfs and the agent when something goes wrong: what users read, when the agent ends, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from machines import digests
from s3_stub import Call, Fault, Stub, environment

from .conftest import AGENT, LfsMachine
from .test_agent import SMALL, contents, noise

URL = "s3://bucket/data"
LARGE = {"large.bin": noise(90_000_000, 7)}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def s3(lfs: LfsMachine, stub: Stub) -> LfsMachine:
    """Its data goes to the stub."""
    lfs.env.update({name: value for name, value in environment(lfs.home, stub).items() if value is not None})
    lfs.git(lfs.work, "config", "datasets.remote", URL)
    return lfs


def clone_of(machine: LfsMachine) -> Path:
    clone = machine.clone()
    machine.git(clone, "config", "datasets.remote", URL)
    return clone


def left_by_sessions(repo: Path) -> list[Path]:
    return [*repo.glob(".git/datasets/tmp/*"), *repo.glob(".git/lfs/tmp/git-datasets*")]


def wait_until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_refusal_of_s3_is_told_in_words(s3: LfsMachine, stub: Stub) -> None:
    s3.commit({name: SMALL[name] for name in list(SMALL)[:51]})
    denied = Fault(403, "AccessDenied")
    stub.fault = lambda call: denied if call.operation == "PutObject" and "/packs/" in call.key else None
    refused = s3.git(s3.work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "no permission to write packs/" in refused.stderr
    assert "EOF" not in refused.stderr
    assert s3.git(s3.origin, "branch").stdout == ""
    stub.fault = lambda call: None
    s3.git(s3.work, "push", "-q", "-u", "origin", "main")
    clone = clone_of(s3)
    stub.fault = lambda call: denied if call.operation == "GetObject" and "/packs/" in call.key else None
    failed = s3.lfs(clone, "pull", check=False)
    assert failed.returncode != 0
    assert "you have no permission for it (s3:GetObject" in failed.stderr
    stub.fault = lambda call: None
    s3.lfs(clone, "pull")
    assert contents(clone) == contents(s3.work)


def say(pipe: IO[bytes] | None, **message: object) -> None:
    assert pipe is not None
    pipe.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    pipe.flush()


def hear(pipe: IO[bytes] | None) -> dict[str, object]:
    assert pipe is not None
    return json.loads(pipe.readline())  # type: ignore[no-any-return]


class Session:
    """A conversation with an agent that the test has by itself."""

    def __init__(self, machine: LfsMachine, operation: str, repo: Path, *command: str | Path) -> None:
        self.process = subprocess.Popen(
            [os.fspath(part) for part in command or (AGENT,)], cwd=repo, env=machine.env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        say(self.process.stdin, event="init", operation=operation, remote="origin", concurrent=False)
        assert hear(self.process.stdout) == {}

    def say(self, **message: object) -> None:
        say(self.process.stdin, **message)

    def hear(self) -> dict[str, object]:
        return hear(self.process.stdout)

    def end(self, *, deaf: bool = False) -> tuple[int, bytes]:
        """Close the streams to it; its exit code, and what it wrote to stderr."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        if deaf:
            self.process.stdout.close()
        code = self.process.wait(20)
        assert self.process.stderr is not None
        told = self.process.stderr.read()
        self.process.stderr.close()
        self.process.stdout.close()
        return code, told


def test_a_403_is_a_code_and_a_message(s3: LfsMachine, stub: Stub) -> None:
    s3.commit({"a.bin": SMALL["small/000.bin"]})
    (stored,) = (path for path in (s3.work / ".git/lfs/objects").rglob("*") if path.is_file())
    stub.fault = lambda call: Fault(403, "AccessDenied") if call.operation == "PutObject" else None
    session = Session(s3, "upload", s3.work)
    session.say(event="upload", oid=stored.name, size=stored.stat().st_size, path=str(stored), action=None)
    answers = [session.hear()]
    while answers[-1]["event"] == "progress":
        answers.append(session.hear())
    assert answers[-1]["event"] == "complete"
    assert answers[-1]["oid"] == stored.name
    error = answers[-1]["error"]
    assert isinstance(error, dict)
    assert error["code"] == 8
    assert "no permission to write" in error["message"]
    assert "s3:PutObject" in error["message"]
    session.say(event="terminate")
    assert session.end() == (0, b"")


@pytest.mark.parametrize("deaf", [True, False])
def test_an_agent_that_nobody_listens_to_does_not_wait_for_a_server(s3: LfsMachine, stub: Stub, deaf: bool) -> None:
    s3.commit({"a.bin": noise(3_000_000, 1)})
    (stored,) = (path for path in (s3.work / ".git/lfs/objects").rglob("*") if path.is_file())
    stalled: list[str] = []

    def fault(call: Call) -> Fault | None:
        if call.operation != "PutObject" or "/packs/" not in call.key:
            return None
        stalled.append(call.key)
        return Fault(stall=15)

    stub.fault = fault
    session = Session(s3, "upload", s3.work)
    session.say(event="upload", oid=stored.name, size=stored.stat().st_size, path=str(stored), action=None)
    wait_until(lambda: stalled)
    began = time.monotonic()
    code, told = session.end(deaf=deaf)
    assert time.monotonic() - began < 3
    assert code == 1
    assert b"Traceback" not in told
    assert left_by_sessions(s3.work) == []


def test_an_interrupted_pull_goes_on_where_it_was(s3: LfsMachine, stub: Stub) -> None:
    s3.commit(SMALL | LARGE)
    s3.git(s3.work, "push", "-q", "origin", "main")
    stored = sum(map(len, stub.objects.values()))
    clone = clone_of(s3)
    late: list[str] = []

    def fault(call: Call) -> Fault | None:
        if call.operation == "GetObject" and "/packs/" in call.key:
            late.append(call.headers.get("range", ""))
            if len(late) > 4:
                return Fault(stall=15)
        return None

    stub.fault = fault
    pull = subprocess.Popen(["git", "lfs", "pull"], cwd=clone, env=s3.env, start_new_session=True)
    wait_until(lambda: len(late) > 4)
    time.sleep(0.5)
    os.killpg(pull.pid, signal.SIGKILL)
    pull.wait()
    assert left_by_sessions(clone)
    stub.fault = lambda call: None
    stub.calls.clear()
    s3.lfs(clone, "pull")
    assert contents(clone) == contents(s3.work)
    assert left_by_sessions(clone) == []
    fetched = 0
    for call in stub.calls:
        if call.operation == "GetObject" and "/packs/" in call.key:
            first, last = map(int, call.headers["range"].removeprefix("bytes=").split("-"))
            fetched += last + 1 - first
    assert fetched < stored * 0.7


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_pull_whose_git_lfs_has_gone_ends_soon_and_keeps_what_came(
    s3: LfsMachine, stub: Stub, how: signal.Signals
) -> None:
    s3.commit(LARGE)
    s3.git(s3.work, "push", "-q", "origin", "main")
    clone = clone_of(s3)
    agent = s3.root / "agent"
    agent.write_text(f"#!/bin/sh\necho $$ >> {s3.root}/pids\nexec {AGENT}\n")
    agent.chmod(0o755)
    s3.git(clone, "config", "lfs.customtransfer.datasets.path", str(agent))
    late: list[Call] = []

    def fault(call: Call) -> Fault | None:
        if call.operation == "GetObject" and "/packs/" in call.key:
            late.append(call)
            if len(late) > 3:
                return Fault(stall=15)
        return None

    stub.fault = fault
    pull = subprocess.Popen(
        [s3.root / "programs/git-lfs", "pull"], cwd=clone, env=s3.env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_until(lambda: len(late) > 3)
    os.kill(pull.pid, how)
    pull.wait()
    time.sleep(2.5)
    pids = (s3.root / "pids").read_text().split()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert not list(clone.glob(".git/lfs/tmp/git-datasets*"))
    assert list(clone.glob(".git/datasets/tmp/*")), "for the next"
    stub.fault = lambda call: None
    s3.lfs(clone, "pull")
    assert contents(clone) == contents(s3.work)
    assert left_by_sessions(clone) == []


def test_a_download_is_never_silent(s3: LfsMachine, stub: Stub) -> None:
    s3.commit(LARGE)
    s3.git(s3.work, "push", "-q", "origin", "main")
    clone = clone_of(s3)
    (stored,) = (path for path in (s3.work / ".git/lfs/objects").rglob("*") if path.is_file())
    session = Session(s3, "download", clone)
    session.say(event="download", oid=stored.name, size=stored.stat().st_size, action=None)
    answers = [session.hear()]
    while answers[-1]["event"] == "progress":
        answers.append(session.hear())
    assert len(answers) > 2, "a word before the last one, however fast it comes"
    so_far = [int(str(m["bytesSoFar"])) for m in answers[:-1]]
    assert so_far == sorted(set(so_far))
    assert so_far[-1] == stored.stat().st_size
    assert sum(int(str(m["bytesSinceLast"])) for m in answers[:-1]) == so_far[-1]
    assert digests(Path(str(answers[-1]["path"])).parent)
    session.say(event="terminate")
    assert session.end() == (0, b"")
    assert left_by_sessions(clone) == []


MISTAKEN = """
import gds_lfs.transfer.outbox
from gds_lfs.porcelain.lfs import main

def add(*_):
    raise ZeroDivisionError("a mistake of ours")

gds_lfs.transfer.outbox.Outbox.add = add
main()
"""


def test_what_nobody_foresaw_is_in_the_log_and_the_message_says_where(lfs: LfsMachine) -> None:
    script = lfs.root / "mistaken.py"
    script.write_text(MISTAKEN)
    lfs.git(lfs.work, "config", "lfs.customtransfer.datasets.path", sys.executable)
    lfs.git(lfs.work, "config", "lfs.customtransfer.datasets.args", str(script))
    lfs.commit({"a.bin": b"a" * 3000})
    refused = lfs.git(lfs.work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    log = lfs.work / ".git/datasets/agent.log"
    assert f"ZeroDivisionError: a mistake of ours (details: {log})" in refused.stderr
    assert "in add\n" in log.read_text()
    assert "Traceback" in log.read_text()
