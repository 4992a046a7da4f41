"""git-lfs moves its objects through the agent, to a folder and back."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from machines import digests, is_clean

from .conftest import AGENT, LfsMachine


def noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


SMALL = {f"small/{number:03}.bin": noise(2000 + number, number) for number in range(250)}
LARGE = {"large.bin": noise(3_000_000, 1000)}


def contents(folder: Path) -> dict[str, str]:
    """Every file's content, whatever its mode: git-lfs does not mind the umask."""
    return {name: digest[:64] for name, digest in digests(folder).items()}


def objects(folder: Path) -> int:
    return len([path for path in (folder / ".git/lfs/objects").rglob("*") if path.is_file()])


def test_push_and_the_recipe_for_a_fresh_clone(lfs: LfsMachine) -> None:
    lfs.commit(SMALL | LARGE)
    lfs.git(lfs.work, "push", "-q", "-u", "origin", "main")
    assert len(lfs.packs()) <= 5, "objects travel in packs"
    assert len(list((lfs.data / "index").iterdir())) == 1
    clone = lfs.clone()
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)
    assert is_clean(lfs, clone)
    assert not list(clone.rglob("*git-datasets-*")), "a session leaves nothing behind"
    lfs.lfs(clone, "fsck")


def test_a_smudge_in_a_configured_clone_goes_through_the_agent(lfs: LfsMachine) -> None:
    lfs.commit(SMALL | LARGE)
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    for key, value in {
        "lfs.standalonetransferagent": "datasets",
        "lfs.customtransfer.datasets.path": str(AGENT),
        "datasets.remote": str(lfs.data),
    }.items():
        lfs.git(lfs.root, "config", "--global", key, value)
    lfs.git(lfs.root, "clone", "-q", lfs.origin, "clone")
    lfs.lfs(lfs.root, "clone", lfs.origin, "at-once")
    assert contents(lfs.root / "clone") == contents(lfs.root / "at-once") == contents(lfs.work)


def test_lfs_push_by_hand_and_fetch_of_a_part(lfs: LfsMachine) -> None:
    lfs.commit(SMALL | LARGE)
    lfs.lfs(lfs.work, "push", "origin", "main")
    assert lfs.packs()
    lfs.git(lfs.work, "push", "-q", "--no-verify", "origin", "main")
    clone = lfs.clone()
    lfs.lfs(clone, "fetch", "--include", "large.bin")
    assert objects(clone) == 1
    lfs.lfs(clone, "fetch", "--include", "small/00*.bin")
    assert objects(clone) == 11
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_the_next_version_of_a_large_file_costs_its_changes(lfs: LfsMachine) -> None:
    content = noise(30_000_000, 1)
    lfs.commit({"a.bin": content})
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    before = sum(pack.stat().st_size for pack in lfs.packs())
    lfs.commit({"a.bin": content[:10_000_000] + b"x" * 100 + content[10_000_000:]})
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    assert sum(pack.stat().st_size for pack in lfs.packs()) - before < 600_000
    clone = lfs.clone()
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


@pytest.mark.parametrize("workers", ["1", "8"])
def test_any_number_of_agents(lfs: LfsMachine, workers: str) -> None:
    lfs.git(lfs.work, "config", "lfs.concurrenttransfers", workers)
    files = {name: SMALL[name] for name in list(SMALL)[:120]}
    lfs.commit(files | LARGE)
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    if workers == "8":
        assert len(lfs.packs()) <= 3
    clone = lfs.clone()
    lfs.git(clone, "config", "lfs.concurrenttransfers", workers)
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_a_git_lfs_that_listens_hands_out_more_at_a_time(lfs: LfsMachine) -> None:
    told = lfs.lfs(lfs.work, "version").stdout
    major, minor = map(int, re.match(r"git-lfs/(\d+)\.(\d+)", told).groups())  # type: ignore[union-attr]
    lfs.commit(SMALL)
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    assert len(lfs.packs()) == (1 if (major, minor) >= (3, 6) else 3)


def test_not_concurrent(lfs: LfsMachine) -> None:
    lfs.git(lfs.work, "config", "lfs.customtransfer.datasets.concurrent", "false")
    lfs.commit({name: SMALL[name] for name in list(SMALL)[:20]})
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    clone = lfs.clone()
    lfs.git(clone, "config", "lfs.customtransfer.datasets.concurrent", "false")
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_two_pushes_at_once_from_one_repository(lfs: LfsMachine) -> None:
    lfs.commit(SMALL)
    lfs.git(lfs.work, "checkout", "-q", "-b", "other")
    lfs.commit(LARGE | {"b.bin": noise(5000, 77)})
    running = [
        subprocess.Popen(["git", "push", "-q", "origin", branch], cwd=lfs.work, env=lfs.env)
        for branch in ("main", "other", "other:again")
    ]
    assert [push.wait(120) for push in running] == [0, 0, 0]
    clone = lfs.clone()
    lfs.git(clone, "checkout", "-q", "other", env={"GIT_LFS_SKIP_SMUDGE": "1"})
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_the_same_objects_twice_are_sent_once(lfs: LfsMachine) -> None:
    lfs.commit(SMALL | LARGE | {"twin.bin": LARGE["large.bin"]})
    lfs.lfs(lfs.work, "push", "origin", "main")
    before = digests(lfs.data)
    lfs.lfs(lfs.work, "push", "--all", "origin")
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    assert digests(lfs.data) == before


def test_git_datasets_push_and_git_lfs_push_store_the_same_content_once(lfs: LfsMachine) -> None:
    lfs.commit(SMALL | LARGE)
    lfs.lfs(lfs.work, "push", "origin", "main")
    before = {name for name in digests(lfs.data) if name.startswith("packs/")}
    ours = lfs.repo("ours")
    lfs.gd(lfs.root, "install")
    lfs.gd(ours, "track", "*.bin")
    lfs.gd(ours, "link", "--local", lfs.data)
    lfs.commit(SMALL | LARGE, repo=ours)
    lfs.gd(ours, "push")
    assert {name for name in digests(lfs.data) if name.startswith("packs/")} == before
    lfs.commit({"new.bin": noise(400_000, 5)}, repo=ours)
    lfs.gd(ours, "push")
    after = {name for name in digests(lfs.data) if name.startswith("packs/")}
    lfs.commit({"new.bin": noise(400_000, 5)})
    lfs.lfs(lfs.work, "push", "origin", "main")
    assert {name for name in digests(lfs.data) if name.startswith("packs/")} == after


def test_an_object_that_is_missing_here_stops_the_push(lfs: LfsMachine) -> None:
    lfs.commit(LARGE | {"b.bin": b"b" * 5000})
    for path in (lfs.work / ".git/lfs/objects").rglob("*"):
        if path.is_file() and path.stat().st_size == 5000:
            path.unlink()
    (lfs.work / "b.bin").unlink()
    refused = lfs.git(lfs.work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert lfs.git(lfs.origin, "branch").stdout == ""


def test_an_object_that_is_damaged_here_stops_the_push_and_costs_no_other(lfs: LfsMachine) -> None:
    """Small objects are answered before they are read: what is wrong with one is told by another."""
    lfs.commit(SMALL)
    damaged = [path for path in (lfs.work / ".git/lfs/objects").rglob("*") if path.stat().st_size in (2040, 2210)]
    for path in damaged:
        path.chmod(0o644)
        path.write_bytes(noise(path.stat().st_size, 5))
    refused = lfs.git(lfs.work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "is not the object" in refused.stderr
    assert any(path.name in refused.stderr for path in damaged)
    assert "(and 1 more)" in refused.stderr
    assert lfs.git(lfs.origin, "branch").stdout == ""
    sent = sum(pack.stat().st_size for pack in lfs.packs())
    assert sent > 200 * 2000
    shutil.rmtree(lfs.work / ".git/lfs/objects")
    lfs.git(lfs.work, "rm", "-rq", "--cached", "small")
    lfs.git(lfs.work, "add", "small")  # makes the objects again
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    assert sum(pack.stat().st_size for pack in lfs.packs()) < sent + 10_000
    clone = lfs.clone()
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_an_object_that_is_missing_there_fails_alone_by_name(lfs: LfsMachine) -> None:
    lfs.commit({"a.bin": noise(300_000, 1)})
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    first = set(lfs.packs())
    lfs.commit({"b.bin": noise(300_000, 2)})
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    (second,) = set(lfs.packs()) - first
    second.unlink()
    clone = lfs.clone()
    failed = lfs.lfs(clone, "pull", check=False)
    assert failed.returncode != 0
    assert "does not have" in failed.stderr
    assert objects(clone) == 1, "the others arrive"
    lfs.lfs(lfs.work, "push", "--all", "origin")
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_a_remote_that_is_down_stops_push_and_pull_in_words(lfs: LfsMachine) -> None:
    lfs.commit({name: SMALL[name] for name in list(SMALL)[:20]})
    lfs.git(lfs.work, "config", "datasets.remote", str(lfs.root / "unmounted/data"))
    refused = lfs.git(lfs.work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "is the drive mounted?" in refused.stderr
    assert "EOF" not in refused.stderr
    assert lfs.git(lfs.origin, "branch").stdout == ""
    lfs.git(lfs.work, "push", "-q", "--no-verify", "origin", "main")
    failed = lfs.lfs(lfs.clone(), "pull", check=False)
    assert failed.returncode != 0
    assert "is the drive mounted" in failed.stderr


def test_a_remote_that_breaks_in_the_middle_of_a_push_keeps_the_refs_where_they_are(lfs: LfsMachine) -> None:
    lfs.data.mkdir()
    (lfs.data / "index").write_text("a file where a folder must be")
    lfs.commit({name: SMALL[name] for name in list(SMALL)[:120]})
    refused = lfs.git(lfs.work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "cannot write index/" in refused.stderr
    assert lfs.git(lfs.origin, "branch").stdout == ""
    (lfs.data / "index").unlink()
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    clone = lfs.clone()
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_a_place_that_has_lost_all_is_not_begun_anew_unasked(lfs: LfsMachine) -> None:
    lfs.configure(lfs.work)
    lfs.commit({"a.bin": os.urandom(3000)})
    lfs.git(lfs.work, "push", "-q", "-u", "origin", "main")
    unmounted = lfs.root / "unmounted"
    lfs.data.rename(unmounted)
    for there in (False, True):
        if there:
            lfs.data.mkdir()
        lfs.commit({"b.bin": os.urandom(3000)})
        refused = lfs.git(lfs.work, "push", check=False)
        assert refused.returncode != 0
        assert "is the drive mounted" in refused.stderr
        assert "git config --unset remote.origin.datasetsplace" in refused.stderr
        assert not lfs.packs()
    lfs.git(lfs.work, "config", "--unset", "remote.origin.datasetsplace")
    lfs.lfs(lfs.work, "push", "--all", "origin")
    lfs.git(lfs.work, "push")
    shutil.rmtree(unmounted)
    clone = lfs.clone()
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_status_misses_nothing_that_the_agent_does_not_need(lfs: LfsMachine) -> None:
    lfs.configure(lfs.work)
    lfs.commit({"a.bin": b"a" * 3000})
    told = lfs.gd(lfs.work, "status").stdout
    assert f"data goes to: {lfs.data}" in told
    assert "hooks" not in told
    assert "filter" not in told


def test_no_remote_at_all_is_said(lfs: LfsMachine) -> None:
    lfs.git(lfs.work, "config", "--unset", "datasets.remote")
    lfs.git(lfs.work, "remote", "set-url", "origin", "https://host.invalid/x.git")
    lfs.commit({"a.bin": b"a" * 3000})
    refused = lfs.lfs(lfs.work, "push", "https://host.invalid/x.git", "--object-id", oid_of_one(lfs), check=False)
    assert refused.returncode != 0
    assert "git datasets link" in refused.stderr


def oid_of_one(lfs: LfsMachine) -> str:
    return next(path.name for path in (lfs.work / ".git/lfs/objects").rglob("*") if path.is_file())


def test_a_wrong_path_to_the_agent_stops_the_push(lfs: LfsMachine) -> None:
    lfs.git(lfs.work, "config", "lfs.customtransfer.datasets.path", "/nowhere/git-datasets-agent")
    lfs.commit({"a.bin": b"a" * 3000})
    refused = lfs.git(lfs.work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert lfs.git(lfs.origin, "branch").stdout == ""


def test_killed_half_way_then_again(lfs: LfsMachine) -> None:
    lfs.commit(SMALL | {"large.bin": noise(60_000_000, 9)})
    for delay in (0.15, 0.3, 0.5):
        push = subprocess.Popen(
            ["git", "push", "-q", "origin", "main"], cwd=lfs.work, env=lfs.env, start_new_session=True
        )
        time.sleep(delay)
        os.killpg(push.pid, 9)
        push.wait()
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    clone = lfs.clone()
    pull = subprocess.Popen(["git", "lfs", "pull"], cwd=clone, env=lfs.env, start_new_session=True)
    time.sleep(0.4)
    os.killpg(pull.pid, 9)
    pull.wait()
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_an_agent_that_is_killed_fails_the_push(lfs: LfsMachine) -> None:
    """All agents of a push hang on the first; when it dies nothing that was gathered counts."""
    agent = lfs.root / "agent"
    agent.write_text(f"#!/bin/sh\necho $$ >> {lfs.root}/pids\nexec {AGENT}\n")
    agent.chmod(0o755)
    lfs.git(lfs.work, "config", "lfs.customtransfer.datasets.path", str(agent))
    lfs.commit({"large.bin": noise(200_000_000, 9), "b.bin": b"b" * 5000})
    push = subprocess.Popen(["git", "push", "-q", "origin", "main"], cwd=lfs.work, env=lfs.env, stderr=subprocess.PIPE)
    pids = lfs.root / "pids"
    while not pids.exists() or len(pids.read_text().splitlines()) < 3:
        time.sleep(0.01)
        assert push.poll() is None
    os.kill(int(pids.read_text().split()[0]), 9)
    _, told = push.communicate(timeout=60)
    assert push.returncode != 0, told
    assert lfs.git(lfs.origin, "branch").stdout == ""
    lfs.git(lfs.work, "push", "-q", "origin", "main")


def test_a_linked_worktree(lfs: LfsMachine) -> None:
    lfs.git(lfs.work, "worktree", "add", "-q", "-b", "side", "../side")
    side = lfs.root / "side"
    lfs.commit(LARGE, repo=side)
    lfs.git(side, "push", "-q", "origin", "side")
    clone = lfs.clone()
    lfs.git(clone, "worktree", "add", "-q", "../other", "side", env={"GIT_LFS_SKIP_SMUDGE": "1"})
    lfs.lfs(lfs.root / "other", "pull")
    assert (lfs.root / "other/large.bin").read_bytes() == LARGE["large.bin"]


def test_a_submodule(lfs: LfsMachine) -> None:
    lfs.commit(LARGE)
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    outer = lfs.repo("outer")
    lfs.git(outer, "submodule", "add", "-q", lfs.origin, "inner", env={"GIT_LFS_SKIP_SMUDGE": "1"})
    inner = outer / "inner"
    lfs.configure(inner)
    lfs.lfs(inner, "pull")
    assert (inner / "large.bin").read_bytes() == LARGE["large.bin"]
    lfs.commit({"more.bin": noise(3000, 4)}, repo=inner)
    lfs.git(inner, "push", "-q", "origin", "HEAD:main")
    assert len(lfs.packs()) == 2


def test_a_temporary_folder_and_a_storage_elsewhere(lfs: LfsMachine) -> None:
    memory = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        lfs.env["TMPDIR"] = str(memory)
        lfs.commit(SMALL | LARGE)
        lfs.git(lfs.work, "push", "-q", "origin", "main")
        clone = lfs.clone()
        lfs.git(clone, "config", "lfs.storage", str(memory / "storage"))
        lfs.lfs(clone, "pull")
        assert contents(clone) == contents(lfs.work)
    finally:
        shutil.rmtree(memory)


def test_two_remotes_one_of_them_plain(lfs: LfsMachine) -> None:
    lfs.gd(lfs.work, "uninstall")
    lfs.git(lfs.work, "config", "--unset", "datasets.remote")
    plain = lfs.bare("plain.git")
    lfs.git(lfs.work, "remote", "add", "plain", plain)
    lfs.configure(lfs.work, "--for", "origin", "--remote", lfs.data)
    lfs.commit(LARGE)
    lfs.git(lfs.work, "push", "-q", "plain", "main")
    assert not lfs.data.exists()
    assert list((plain / "lfs/objects").rglob("*"))
    lfs.lfs(lfs.work, "push", "--all", "origin")
    assert lfs.packs()
    assert not (lfs.origin / "lfs").exists()


def test_install_twice_and_taking_it_back(lfs: LfsMachine) -> None:
    config = lfs.work / ".git/config"
    once = config.read_text()
    lfs.configure(lfs.work)
    assert config.read_text() == once
    assert str(AGENT) in once
    lfs.git(lfs.work, "config", "lfs.concurrenttransfers", "4")
    lfs.gd(lfs.work, "uninstall")
    listed = lfs.git(lfs.work, "config", "--local", "--list").stdout
    assert "customtransfer" not in listed
    assert "standalonetransferagent" not in listed
    assert "batchsize" not in listed
    assert "lfs.concurrenttransfers=4" in listed, "the user's own"


def test_the_agent_alone_is_taken_back(lfs: LfsMachine) -> None:
    other = lfs.repo("other")
    lfs.gd(lfs.root, "install")
    lfs.configure(other)
    said = lfs.gd(lfs.work, "uninstall", "--lfs-agent").stderr
    assert "removed lfs.concurrenttransfers, lfs.customtransfer.datasets.concurrent" in said
    listed = lfs.git(lfs.work, "config", "--list").stdout
    assert "customtransfer" not in listed
    assert "standalonetransferagent" not in listed
    assert "filter.datasets.process=" in listed
    assert f"datasets.remote={lfs.data}" in listed, "as after link"
    assert "standalonetransferagent" in lfs.git(other, "config", "--list").stdout
    assert "was not installed here" in lfs.gd(lfs.work, "uninstall", "--lfs-agent").stderr
    assert lfs.gd(lfs.home, "uninstall", "--lfs-agent", check=False).returncode == 3


@pytest.mark.parametrize(
    ("url", "options", "code"),
    [
        ("gs://bucket/x", (), 8),
        ("gs://user:secret@bucket/x", (), 8),
        ("s3://user:secret@host/x", (), 8),
        ("s3:/bucket/x", (), 8),
        ("/data", ("--region", "here"), 4),
        ("s3://bucket/x", ("--endpoint", "https://user:secret@host"), 8),
    ],
)
def test_a_place_is_checked_as_link_does(lfs: LfsMachine, url: str, options: tuple[str, ...], code: int) -> None:
    before = (lfs.work / ".git/config").read_text()
    refused = lfs.gd(lfs.work, "install", "--lfs-agent", "--remote", url, *options, check=False)
    linked = lfs.gd(lfs.work, "link", "--local", url, *options, check=False)
    assert (refused.returncode, refused.stderr) == (linked.returncode, linked.stderr)
    assert refused.returncode == code
    assert "secret" not in refused.stderr
    assert (lfs.work / ".git/config").read_text() == before


def test_a_place_is_kept_as_link_does(lfs: LfsMachine) -> None:
    said = lfs.gd(lfs.work, "install", "--lfs-agent", "--remote", lfs.root / "mnt/data").stderr
    assert f"{lfs.root / 'mnt'} is not there" in said
    bucket = ("s3://bucket/x", "--endpoint", "http://127.0.0.1:9", "--region", "here")
    lfs.gd(lfs.work, "install", "--lfs-agent", "--for", "origin", "--remote", *bucket)
    written = lfs.git(lfs.work, "config", "--get-regexp", r"^remote\.origin\.datasets").stdout.splitlines()
    assert [line.partition(" ")[2] for line in written] == ["s3://bucket/x", "http://127.0.0.1:9", "here"]
    lfs.gd(lfs.work, "install", "--lfs-agent", "--for", "origin", "--remote", lfs.data)
    written = lfs.git(lfs.work, "config", "--get-regexp", r"^remote\.origin\.datasets").stdout
    assert written == f"remote.origin.datasetsurl {lfs.data}\n"
    assert lfs.gd(lfs.work, "install", "--endpoint", "http://x", check=False).returncode == 2
    refused = lfs.gd(lfs.work, "install", "--lfs-agent", "--remote", "origin", "--region", "here", check=False)
    assert refused.returncode == 4


def test_one_remote_after_all_is_said_to_narrow_nothing(lfs: LfsMachine) -> None:
    said = lfs.gd(lfs.work, "install", "--lfs-agent", "--for", "origin").stderr
    assert "so does what belongs to every other git remote" in said
    assert "`git datasets uninstall --lfs-agent`" in said
    lfs.gd(lfs.work, "uninstall", "--lfs-agent")
    assert "every other" not in lfs.gd(lfs.work, "install", "--lfs-agent", "--for", "origin").stderr


def test_two_urls_side_by_side(lfs: LfsMachine) -> None:
    lfs.gd(lfs.work, "uninstall", "--lfs-agent")
    places = {}
    for name in ("one", "two"):
        url = lfs.bare(f"{name}.git").as_uri()
        places[url] = lfs.root / f"data-{name}"
        lfs.gd(lfs.work, "install", "--lfs-agent", "--for", url, "--remote", places[url])
    assert lfs.git(lfs.work, "config", "datasets.remote").stdout == f"{lfs.data}\n", "what was said of all others"
    for number, (url, place) in enumerate(places.items()):
        lfs.commit({"a.bin": noise(5000, number)})
        lfs.git(lfs.work, "push", "-q", url, "main")
        assert list(place.rglob("*.pack"))
    second = list(places)[1]
    assert not lfs.data.exists()
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    assert not lfs.data.exists(), "git-lfs's own way"
    clone = lfs.root / "clone"
    lfs.git(lfs.root, "clone", "-q", second, "clone", env={"GIT_LFS_SKIP_SMUDGE": "1"})
    lfs.gd(clone, "install", "--lfs-agent", "--for", second, "--remote", places[second])
    lfs.lfs(clone, "pull")
    assert contents(clone) == contents(lfs.work)


def test_a_remotes_url_is_that_remote(lfs: LfsMachine) -> None:
    lfs.gd(lfs.work, "uninstall", "--lfs-agent")
    lfs.gd(lfs.work, "install", "--lfs-agent", "--for", lfs.origin, "--remote", lfs.root / "mine")
    assert lfs.git(lfs.work, "config", "remote.origin.datasetsurl").stdout == f"{lfs.root / 'mine'}\n"
    assert lfs.git(lfs.work, "config", "datasets.remote").stdout == f"{lfs.data}\n"
    for number, spelled in enumerate((lfs.origin, lfs.origin.as_uri(), "origin")):
        lfs.commit({"a.bin": noise(5000, number)})
        lfs.git(lfs.work, "push", "-q", spelled, "main")
        assert len(list((lfs.root / "mine").rglob("*.pack"))) == number + 1
    assert not lfs.data.exists()


def test_a_password_in_a_git_remotes_url_is_neither_shown_nor_written_again(lfs: LfsMachine) -> None:
    lfs.git(lfs.work, "remote", "add", "web", "https://user:secret@git.invalid/x.git")
    before = (lfs.work / ".git/config").read_text().count("secret")
    for spelled in ("web", "https://user:secret@git.invalid/x.git", "https://user:secret@git.invalid/y.git"):
        said = lfs.gd(lfs.work, "install", "--lfs-agent", "--for", spelled, "--remote", lfs.data).stderr
        assert "secret" not in said
    config = (lfs.work / ".git/config").read_text()
    assert config.count("secret") == before
    assert "secret" not in lfs.gd(lfs.work, "uninstall", "--lfs-agent").stderr
    assert '[lfs "https://git.invalid/x.git/info/lfs"]' in config
    assert '[datasets "https://git.invalid/y.git"]' in config


def test_init_is_answered_outside_a_repository_and_the_request_says_why(lfs: LfsMachine) -> None:
    lines = [
        {"event": "init", "operation": "download", "remote": "origin", "concurrent": False, "concurrenttransfers": 3},
        {"event": "download", "oid": "ab" * 32, "size": 3, "action": None},
        {"event": "terminate"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = lfs.run(AGENT, cwd=lfs.home, input=text)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0] == {}
    assert answers[1]["error"]["code"] == 3
    assert "not a git repository" in answers[1]["error"]["message"]
