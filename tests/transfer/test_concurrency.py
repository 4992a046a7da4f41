"""Several at once, and processes that are killed."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gds_lfs.remote.base import open_remote
from gds_lfs.remote.directory import DirectoryRemote
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer import consolidate
from gds_lfs.transfer.download import download
from gds_lfs.transfer.upload import upload

FRAMES = [random.Random(50 + n).randbytes(100_000) for n in range(200)]


def oid(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def push_together(clones: list[Any], remotes: list[Any], contents: list[list[bytes]], retry: Any) -> None:
    start = threading.Barrier(len(clones), timeout=30)

    def push(clone: Any, remote: Any, mine: list[bytes]) -> None:
        wanted = clone.add(*mine)
        start.wait()
        upload(clone.store, remote, clone.cache, wanted, retry=retry)

    with ThreadPoolExecutor(len(clones)) as threads:
        list(threads.map(push, clones, remotes, contents))


@pytest.mark.parametrize("kind", ["memory", "directory"])
def test_two_push_to_an_empty_remote(tmp_path: Path, clone: Any, memory: Any, prompt: Any, kind: str) -> None:
    make = type(clone)
    for turn in range(20):
        folder = tmp_path / str(turn)
        folder.mkdir()
        remotes = [memory, memory]
        if kind == "directory":
            remotes = [open_remote("remote", folder) for _ in range(2)]
        shared = b"both %d" % turn
        contents = [[shared, b"a%d" % turn, b"aa%d" % turn], [shared, b"b%d" % turn]]
        push_together([make(folder / "a"), make(folder / "b")], remotes, contents, prompt)
        third = make(folder / "c")
        every = sorted({data for mine in contents for data in mine})
        report = download(third.store, remotes[0], third.cache, {oid(data): "x" for data in every}, retry=prompt)
        assert len(report.fetched) == 4
        assert third.holds(*every)
        memory.objects.clear()


def test_pushes_and_merging_of_shards_together(
    tmp_path: Path, clone: Any, prompt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidate, "MAX_SHARDS", 3)
    make = type(clone)
    clones = [make(tmp_path / name) for name in "abc"]
    remotes = [open_remote("remote", tmp_path) for _ in clones]
    pushed: list[bytes] = []
    for turn in range(10):
        contents = [[b"%d of %d" % (turn, number)] for number in range(len(clones))]
        push_together(clones, remotes, contents, prompt)
        pushed += [data for mine in contents for data in mine]
        reader = make(tmp_path / f"reader{turn}")
        wanted = {oid(data): "x" for data in pushed}
        assert download(reader.store, remotes[0], reader.cache, wanted, retry=prompt).fetched == wanted.keys()
    assert len(list(remotes[0].list("index/"))) <= 3 + 2 * len(clones)


def test_many_fetch_the_same_into_one_store(tmp_path: Path, clone: Any, memory: Any, prompt: Any) -> None:
    wanted = clone.add(*FRAMES)
    upload(clone.store, memory, clone.cache, wanted, retry=prompt)
    root = tmp_path / "shared"

    def fetch(_: int) -> int:
        store = LocalStore(root)
        report = download(store, memory, tmp_path / "cache", wanted, turn=root / "fetch.lock", retry=prompt)
        assert report.missing == report.damaged == {}
        assert store.missing(wanted) == set()
        return report.bytes_received

    with ThreadPoolExecutor(6) as threads:
        received = sorted(threads.map(fetch, range(6)))
    assert received[:5] == [0] * 5
    assert received[5] > len(FRAMES) * 100_000
    assert LocalStore(root).missing(wanted) == set()
    assert list((root / "tmp").iterdir()) == []


SCRIPT = """
import sys, threading
from pathlib import Path
from gds_lfs.remote.directory import DirectoryRemote
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer import ranges, whole
from gds_lfs.transfer.{module} import {module}

ranges.MAX_SIZE = whole.MAX_SIZE = 8 << 20

class Stalls(DirectoryRemote):
    parallel = 1
    calls = 0
    def {method}(self, key, *args):
        if key.startswith("packs/"):
            self.calls += 1
            if self.calls > 1:
                print("stalled", flush=True)
                threading.Event().wait(60)
        return super().{method}(key, *args)

root, remote, cache = map(Path, sys.argv[1:4])
wanted = {{bytes.fromhex(line): "x" for line in sys.stdin.read().split()}}
{module}(LocalStore(root), Stalls(remote), cache, wanted)
"""


def run_and_kill(module: str, method: str, clone_root: Path, remote: Path, wanted: dict[bytes, str]) -> None:
    script = SCRIPT.format(module=module, method=method)
    paths = [str(clone_root / "datasets"), str(remote), str(clone_root / "cache")]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(each.hex() for each in wanted))
        process.stdin.close()
        assert process.stdout.readline() == "stalled\n"
        os.kill(process.pid, signal.SIGKILL)


def test_a_killed_download_keeps_what_had_come(tmp_path: Path, clone: Any, other: Any, prompt: Any) -> None:
    wanted = clone.add(*FRAMES)
    remote = DirectoryRemote(tmp_path / "remote")
    upload(clone.store, remote, clone.cache, wanted, retry=prompt)
    run_and_kill("download", "get_range", tmp_path / "two", tmp_path / "remote", wanted)
    assert list((tmp_path / "two" / "datasets" / "tmp").glob("*.part"))
    run_and_kill("download", "get_range", tmp_path / "two", tmp_path / "remote", wanted)
    assert list((tmp_path / "two" / "datasets" / "packs").rglob("*.pack")), "what the first had received"
    report = download(other.store, remote, other.cache, wanted, retry=prompt)
    assert 0 < len(report.fetched) <= 120
    assert report.bytes_received < 130 * 100_000
    assert other.holds(*FRAMES)
    assert list((tmp_path / "two" / "datasets" / "tmp").iterdir()) == []


def test_after_a_killed_upload_the_next_one_needs_no_unlocking(
    tmp_path: Path, clone: Any, other: Any, third: Any, prompt: Any
) -> None:
    wanted = clone.add(*FRAMES, *[random.Random(n).randbytes(1_000_000) for n in range(20)])
    remote = DirectoryRemote(tmp_path / "remote")
    run_and_kill("upload", "put", tmp_path / "one", tmp_path / "remote", wanted)
    (there,) = [key for key, _ in remote.list("packs/")]
    assert list(remote.list("index/")) == []
    assert upload(other.store, remote, other.cache, other.add(b"someone else's"), retry=prompt).files == 1
    before = (tmp_path / "remote" / there).stat()
    report = upload(clone.store, remote, clone.cache, wanted, retry=prompt)
    assert report.files == len(wanted)
    assert (tmp_path / "remote" / there).stat() == before
    assert download(third.store, remote, third.cache, wanted, retry=prompt).fetched == wanted.keys()
    assert [path.name for path in clone.cache.iterdir() if path.is_file()] == []
