"""git over an S3 server that fails on demand: who gets requests, what is sent again after a kill, what users read."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from machines import Machine, digests, is_clean
from s3_stub import Call, Fault, Stub, environment

URL = "s3://bucket/data"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture
def ready(machine: Machine) -> Machine:
    machine.env.update({name: value for name, value in environment(machine.home).items() if value is not None})
    machine.gd(machine.root, "install")
    return machine


@pytest.fixture
def work(ready: Machine, stub: Stub) -> Path:
    origin = ready.bare()
    work = ready.repo()
    ready.git(work, "remote", "add", "origin", origin)
    ready.gd(work, "track", "*.bin")
    ready.gd(work, "link", URL, "--endpoint", stub.endpoint)
    ready.git(work, "add", ".gitattributes")
    ready.git(work, "commit", "-qm", "set up")
    return work


def commit(machine: Machine, work: Path, files: dict[str, bytes], message: str = "files") -> None:
    for name, content in files.items():
        (work / name).write_bytes(content)
    machine.gd(work, "add", ".")
    machine.git(work, "commit", "-qm", message)


def stranger(ready: Machine) -> dict[str, str]:
    """Another user on the same machine: with keys, but without anything this one has approved."""
    home = ready.root / "stranger"
    home.mkdir()
    env = {"HOME": str(home)}
    ready.gd(ready.root, "install", env=env)
    ready.git(ready.root, "config", "--global", "user.name", "A Stranger", env=env)
    ready.git(ready.root, "config", "--global", "user.email", "stranger@example.org", env=env)
    ready.git(ready.root, "config", "--global", "protocol.file.allow", "always", env=env)
    return env


def test_a_server_that_only_a_tracked_file_names_gets_no_request(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    stub.calls.clear()
    env = stranger(ready)
    command = f"git datasets link {URL} --endpoint {stub.endpoint}"

    told = ready.git(ready.root, "clone", "-q", "origin.git", "theirs", env=env)
    assert command in told.stderr
    theirs = ready.root / "theirs"
    for verb in (("pull",), ("fetch",), ("push",)):
        refused = ready.gd(theirs, *verb, env=env, check=False)
        assert refused.returncode == 8
        assert command in refused.stderr
    assert stub.calls == [], "not even a request without a signature"

    ready.run("bash", "-c", command, cwd=theirs, env=env)
    assert is_clean(ready, theirs)
    ready.gd(theirs, "pull", env=env)
    assert digests(theirs) == digests(work)
    ready.git(ready.root, "clone", "-q", "origin.git", "again", env=env)
    assert digests(ready.root / "again") == digests(work), "approved once, for this user"


def test_the_users_own_words_come_before_the_tracked_file(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    env = stranger(ready)
    dead = {**env, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    ready.git(ready.root, "clone", "-q", "origin.git", "theirs", env={**env, "GIT_DATASETS_SKIP_SMUDGE": "1"})
    theirs = ready.root / "theirs"
    stub.calls.clear()
    assert "127.0.0.1:9" in ready.gd(theirs, "pull", env=dead, check=False).stderr
    assert stub.calls == []
    ready.git(theirs, "config", "datasets.endpoint", stub.endpoint)
    ready.gd(theirs, "pull", env=dead)
    assert digests(theirs) == digests(work)


def test_a_changed_server_is_confirmed_before_a_push(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    with Stub() as other:
        ready.git(work, "config", "--file", ".datasetsconfig", "datasets.endpoint", other.endpoint)
        ready.git(work, "commit", "-qam", "somebody moved the data")
        commit(ready, work, {"b.bin": b"b" * 3000})
        refused = ready.git(work, "push", check=False)
        assert refused.returncode != 0
        command = f"git datasets link {URL} --endpoint {other.endpoint}"
        assert command in refused.stderr
        assert other.calls == []
        ready.run("bash", "-c", command, cwd=work)
        ready.gd(work, "push")
        assert other.objects


def test_a_server_that_is_dropped_is_confirmed_too(ready: Machine, work: Path, stub: Stub) -> None:
    """Or a commit could send the data to a bucket of that name on AWS, which may be anybody's."""
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(work, "config", "--file", ".datasetsconfig", "--unset", "datasets.endpoint")
    ready.git(work, "commit", "-qam", "to AWS")
    commit(ready, work, {"b.bin": b"b" * 3000})
    refused = ready.git(work, "push", check=False)
    assert f"`git datasets link {URL}`" in refused.stderr


def test_a_server_for_one_clone_or_one_git_remote(ready: Machine, work: Path, stub: Stub) -> None:
    with Stub() as own, Stub() as other:
        ready.git(work, "remote", "add", "second", ready.root / "second.git")
        ready.gd(work, "link", "s3://bucket/own", "--local", "--endpoint", own.endpoint)
        ready.gd(work, "link", "s3://bucket/other", "--remote", "second", "--endpoint", other.endpoint)
        assert ready.git(work, "status", "--porcelain").stdout == ""
        commit(ready, work, {"a.bin": b"a" * 3000})
        ready.gd(work, "push", "origin")
        assert any(key.startswith("own/packs/") for key in own.objects)
        ready.gd(work, "push", "second")
        assert any(key.startswith("other/packs/") for key in other.objects)
        assert stub.calls == []


class Doomed:
    """A command that is to be killed half way, with all it started."""

    def __init__(self, machine: Machine, cwd: Path, *command: str) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=machine.env,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.alive = True

    def kill(self) -> None:
        if self.alive:
            self.alive = False
            os.killpg(self.process.pid, signal.SIGKILL)


def test_a_fresh_clone_that_goes_to_a_bucket_fills_it(ready: Machine, stub: Stub) -> None:
    work = ready.repo()
    ready.git(work, "remote", "add", "origin", ready.bare())
    ready.gd(work, "track", "*.bin")
    commit(ready, work, {"a.bin": b"a" * 3000, "b.bin": b"b" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    clone = ready.root / "clone"
    ready.gd(clone, "link", URL, "--endpoint", stub.endpoint)
    ready.git(clone, "commit", "-qm", "Data goes to S3", ".datasetsconfig")
    assert "sent 2 files" in ready.git(clone, "push").stderr
    with Stub() as another:  # the same name on another server is another place
        ready.gd(clone, "link", URL, "--endpoint", another.endpoint)
        ready.git(clone, "commit", "-qm", "Another server", ".datasetsconfig")
        assert "sent 2 files" in ready.git(clone, "push").stderr
        ready.git(ready.root, "clone", "-q", "origin.git", "other")
        assert digests(ready.root / "other") == digests(clone)


def test_a_killed_push_goes_on_where_it_was(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {f"{i}.bin": os.urandom(20_000_000) for i in range(12)})
    push = Doomed(ready, work, "git", "datasets", "push")

    def fault(call: Call) -> None:
        if len([key for key in stub.objects if "/packs/" in key]) == 4:
            push.kill()

    stub.fault = fault
    assert push.process.wait(60) == -signal.SIGKILL
    stored = {key for key in stub.objects if "/packs/" in key}
    assert 4 <= len(stored) < 8
    assert not [key for key in stub.objects if "/index/" in key], "what is half there is not named"
    stub.calls.clear()
    stub.fault = lambda call: None
    ready.gd(work, "push")
    packs = [key for key in stub.puts() if "/packs/" in key]
    assert stored.isdisjoint(packs), "nothing is sent twice"
    # The server may have stored one more by then, which was under way when the push was killed.
    assert len(stored.union(packs)) <= len([key for key in stub.objects if "/packs/" in key]) == 8
    assert len(stub.calls) <= 2 + 2 + len(packs) + 1


def test_a_killed_pull_goes_on_where_it_was(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {f"{i}.bin": os.urandom(20_000_000) for i in range(8)})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    elsewhere = ready.root / "elsewhere"
    ranges: Counter[tuple[str, str]] = Counter()
    for _ in range(3):
        pull = Doomed(ready, elsewhere, "git", "datasets", "pull")
        before = len(stub.calls)

        def fault(call: Call, pull: Doomed = pull, before: int = before) -> None:
            if sum("range" in call.headers for call in stub.calls[before:]) == 13:
                pull.kill()

        stub.fault = fault
        assert pull.process.wait(60) in (0, -signal.SIGKILL)
    stub.fault = lambda call: None
    ready.gd(elsewhere, "pull")
    assert digests(elsewhere) == digests(work)
    for call in stub.calls:
        if "range" in call.headers:
            ranges[call.key, call.headers["range"]] += 1
    again = sum(number - 1 for number in ranges.values())
    assert again <= 3 * 9, "only what was under way when it was killed is fetched again"
    assert [f.name for f in (elsewhere / ".git/datasets/tmp").iterdir() if f.suffix == ".pack"] == []


def test_a_server_that_asks_for_fewer_requests(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {"a.bin": os.urandom(100_000)})
    left = 30

    def busy(call: Call) -> Fault | None:
        nonlocal left
        left -= 1
        return Fault(503, "SlowDown") if left >= 0 else None

    stub.fault = busy
    pushed = ready.git(work, "push", "-q", "-u", "origin", "main")
    assert "SlowDown" not in pushed.stderr
    assert left < 0


def test_a_short_body_is_fetched_again(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {"a.bin": os.urandom(300_000)})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    cut = 2

    def shorten(call: Call) -> Fault | None:
        nonlocal cut
        if "range" not in call.headers:
            return None
        cut -= 1
        return Fault(cut=0.83) if cut >= 0 else None

    stub.fault = shorten
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    assert digests(ready.root / "elsewhere") == digests(work)
    assert cut < 0


def test_a_failing_server_leaves_what_is_there(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {"a.bin": b"old" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    commit(ready, work, {"a.bin": b"new" * 3000})
    ready.git(work, "push", "-q")
    stub.fault = lambda call: Fault(403, "AccessDenied")
    elsewhere = ready.root / "elsewhere"
    told = ready.git(elsewhere, "pull", "-q")
    assert "s3:ListBucket" in told.stderr
    assert (elsewhere / "a.bin").read_bytes().startswith(b"version git-datasets/1\n"), "never old bytes as the new"
    assert ready.gd(elsewhere, "pull", check=False).returncode == 8
    ready.git(elsewhere, "checkout", "-q", "HEAD~1")
    assert (elsewhere / "a.bin").read_bytes() == b"old" * 3000


def test_a_token_that_runs_out_for_good(ready: Machine, work: Path, stub: Stub) -> None:
    commit(ready, work, {f"{i}.bin": os.urandom(20_000_000) for i in range(8)})
    stub.fault = lambda call: Fault(400, "ExpiredToken") if len(stub.puts()) > 3 else None
    refused = ready.git(work, "push", "-u", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "your credentials have expired. Log in again" in refused.stderr
    assert "a-secret" not in refused.stderr
    assert ready.git(ready.root / "origin.git", "branch").stdout == ""
    stored = {key for key in stub.objects if "/packs/" in key}
    stub.calls.clear()
    stub.fault = lambda call: None
    ready.git(work, "push", "-q", "-u", "origin", "main")
    assert stored.isdisjoint(stub.puts())


def test_a_proxy_and_an_authority_of_ones_own(ready: Machine) -> None:
    certificate = Path(__file__).parent.parent / "tests/remote/loopback.pem"
    with Stub(certificate) as stub:
        origin, work = ready.bare(), ready.repo()
        ready.git(work, "remote", "add", "origin", origin)
        ready.gd(work, "track", "*.bin")
        ready.gd(work, "link", URL, "--endpoint", stub.endpoint)
        commit(ready, work, {"a.bin": b"a" * 3000})
        refused = ready.gd(work, "push", check=False)
        assert "AWS_CA_BUNDLE" in refused.stderr
        trusting = {"AWS_CA_BUNDLE": str(certificate)}
        refused = ready.gd(work, "push", env={**trusting, "HTTPS_PROXY": "http://127.0.0.1:9"}, check=False)
        assert "HTTPS_PROXY" in refused.stderr
        env = {**trusting, "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        ready.git(work, "push", "-q", "-u", "origin", "main", env=env)
        ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere", env=env)
        assert digests(ready.root / "elsewhere") == digests(work)
