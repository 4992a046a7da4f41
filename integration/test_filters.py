"""What git's clean and smudge must survive."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from machines import GIT_DATASETS, Machine, blob, digests, is_clean, pointer

BYPASS = [
    "-c", "filter.datasets.process=", "-c", "filter.datasets.clean=cat", "-c", "filter.datasets.smudge=cat",
    "-c", "filter.datasets.required=false",
]  # fmt: skip


def commit(machine: Machine, work: Path, message: str = "more") -> None:
    machine.git(work, "add", "-A")
    machine.git(work, "commit", "-qm", message)


def clone(machine: Machine, name: str = "elsewhere") -> Path:
    machine.git(machine.root, "clone", "-q", "origin.git", name)
    return machine.root / name


def published(machine: Machine, work: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    commit(machine, work)
    machine.git(work, "push", "-q", "-u", "origin", "main")


def test_clean_hashes_what_git_hands_it_not_the_file_on_disk(ready: Machine, work: Path) -> None:
    (work / "a.bin").write_bytes(b"AAA")
    commit(ready, work)
    (work / "a.bin").write_bytes(b"BBB")
    for content in ("CCC", "12345", "x" * 1023, "x" * 1024, "x" * 1025):
        sha = ready.git(work, "hash-object", "-w", "--stdin", "--path", "a.bin", input=content).stdout.strip()
        assert blob(ready, work, sha) == pointer(content.encode())
        ready.git(work, "update-index", "--cacheinfo", f"100644,{sha},a.bin")
        (work / "a.bin").unlink()
        ready.git(work, "checkout-index", "a.bin")
        assert (work / "a.bin").read_bytes() == content.encode()
    ready.git(work, "commit", "-qm", "from the index")
    assert is_clean(ready, work)


@pytest.mark.parametrize("how", ["attribute", "autocrlf"])
def test_line_ending_conversion_never_makes_new_content(ready: Machine, work: Path, how: str) -> None:
    attributes = "*.csv filter=datasets" + (" text eol=crlf" if how == "attribute" else "") + "\n"
    if how == "autocrlf":
        ready.git(work, "config", "core.autocrlf", "true")
    (work / ".gitattributes").write_text(attributes)
    content = b"a,b\r\n1,2\n3,4\r\n"
    (work / "t.csv").write_bytes(content)
    commit(ready, work)
    stored = blob(ready, work, "HEAD:t.csv")
    assert stored.startswith("version git-datasets/1\noid sha256:")
    (work / "t.csv").unlink()
    ready.git(work, "checkout", "--", "t.csv")
    first = (work / "t.csv").read_bytes()
    ready.git(work, "add", "--renormalize", ".")
    assert ready.git(work, "diff", "--cached", "--name-only").stdout == ""
    assert first in (content, content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


def test_track_always_writes_minus_text(ready: Machine, work: Path) -> None:
    ready.gd(work, "track", "*.csv")
    ready.git(work, "config", "core.autocrlf", "true")
    content = b"a,b\r\n1,2\n3,4\r\n"
    (work / "t.csv").write_bytes(content)
    commit(ready, work)
    assert blob(ready, work, "HEAD:t.csv") == pointer(content)
    (work / "t.csv").unlink()
    ready.git(work, "checkout", "--", "t.csv")
    assert (work / "t.csv").read_bytes() == content
    ready.git(work, "add", "--renormalize", ".")
    assert is_clean(ready, work)


def test_files_that_should_have_been_pointers_are_named_and_mended(ready: Machine) -> None:
    origin = ready.bare()
    work = ready.repo()
    ready.git(work, "remote", "add", "origin", origin)
    (work / "x.bin").write_bytes(b"x" * 5000)
    (work / "y.bin").write_bytes(b"y")
    commit(ready, work)
    ready.gd(work, "track", "*.bin")
    ready.git(work, "add", ".gitattributes")
    ready.git(work, "commit", "-qm", "attributes only", ".gitattributes")
    ready.git(work, "push", "-q", "-u", "origin", "main")

    cloned = ready.git(ready.root, "clone", "origin.git", "elsewhere")
    elsewhere = ready.root / "elsewhere"
    assert cloned.stderr.count("should have been pointers") == 1
    assert "x.bin" in cloned.stderr
    assert "y.bin" in cloned.stderr
    ready.git(elsewhere, "checkout", "-f")
    ready.git(elsewhere, "stash")
    for verb in ("status", "fsck"):
        told = ready.gd(elsewhere, verb, check=False)
        assert told.returncode == 1
        assert "x.bin" in told.stdout
        assert "git add --renormalize ." in told.stdout

    ready.git(elsewhere, "add", "--renormalize", ".")
    ready.git(elsewhere, "commit", "-qm", "pointers")
    assert blob(ready, elsewhere, "HEAD:x.bin") == pointer(b"x" * 5000)
    assert is_clean(ready, elsewhere)
    (elsewhere / "x.bin").touch()
    assert is_clean(ready, elsewhere)
    assert ready.gd(elsewhere, "status").returncode == 0


def test_a_malformed_pointer_is_left_as_it_is_and_named(ready: Machine, work: Path) -> None:
    text = pointer(b"whatever") + "junk\n"
    (work / "bad.bin").write_text(text)
    ready.git(work, *BYPASS, "add", "bad.bin")
    ready.git(work, *BYPASS, "commit", "-qm", "malformed", "--no-verify")
    (work / "bad.bin").unlink()
    told = ready.git(work, "checkout", "--", "bad.bin")
    assert "bad.bin" in told.stderr
    assert (work / "bad.bin").read_text() == text
    ready.git(work, "status")
    found = ready.gd(work, "fsck", check=False)
    assert found.returncode == 1
    assert "bad.bin" in found.stdout

    (work / "bad.bin").write_bytes(b"good")
    commit(ready, work, "mended")
    assert blob(ready, work, "HEAD:bad.bin") == pointer(b"good")
    assert ready.gd(work, "fsck").returncode == 0


def test_conflict_markers_around_pointers_are_never_stored(ready: Machine, work: Path) -> None:
    (work / ".gitattributes").write_text("*.bin filter=datasets merge=text -text\n")
    (work / "f.bin").write_bytes(b"base")
    commit(ready, work)
    (work / "f.bin").write_bytes(b"stashed")
    ready.git(work, "stash")
    (work / "f.bin").write_bytes(b"committed")
    commit(ready, work)
    ready.git(work, "stash", "pop", check=False)
    text = (work / "f.bin").read_text()
    assert "<<<<<<<" in text

    ready.git(work, "status")
    ready.git(work, "diff", "--check", check=False)
    refused = ready.git(work, "add", "f.bin", check=False)
    assert refused.returncode != 0
    assert "f.bin" in refused.stderr
    assert "conflict markers" in refused.stderr
    refused = ready.gd(work, "add", "f.bin", check=False)
    assert refused.returncode == 1
    assert (work / "f.bin").read_text() == text
    ready.git(work, "checkout", "--ours", "--", "f.bin")
    assert (work / "f.bin").read_bytes() == b"committed"


AWKWARD = [
    b" lead.bin", b"-dash.bin", b"a b.bin", b"tab\t.bin", b"new\nline.bin", b'q"uote.bin', b"per%cent%f.bin",
    b"back\\slash.bin", b"[1].bin", "ünï.bin".encode(), b"\xff\xfe.bin",
]  # fmt: skip


@pytest.mark.parametrize("verb", ["git", "fast"])
def test_awkward_file_names_travel(ready: Machine, work: Path, verb: str) -> None:
    for number, name in enumerate(AWKWARD):
        Path(os.fsdecode(os.path.join(os.fsencode(work), name))).write_bytes(b"content %d" % number)
    if verb == "git":
        ready.git(work, "add", "-A")
    else:
        ready.gd(work, "add", ".")
    ready.git(work, "commit", "-qm", "names")
    assert is_clean(ready, work)
    ready.git(work, "push", "-q", "-u", "origin", "main")

    listed = ready.gd(work, "ls-files").stdout.splitlines()
    assert len(listed) == len(AWKWARD)
    raw = ready.gd(work, "ls-files", "-z").stdout.encode("utf-8", "surrogateescape").split(b"\0")[:-1]
    assert sorted(raw) == sorted(AWKWARD)
    assert ready.gd(work, "status").returncode == 0
    assert ready.gd(work, "fsck").returncode == 0

    elsewhere = clone(ready)
    assert digests(elsewhere) == digests(work)
    assert is_clean(ready, elsewhere)
    shutil.rmtree(elsewhere / ".git/datasets")
    assert ready.gd(elsewhere, "fetch", "--include", "a b.bin").stderr.count("1 file") == 1


def test_data_that_is_absent_never_leaves_a_branch_half_checked_out(ready: Machine, work: Path) -> None:
    first = {f"{i}.bin": b"old %d" % i for i in range(20)} | {f"{i}.txt": b"old" for i in range(20)}
    published(ready, work, first)
    ready.git(work, "checkout", "-qb", "other")
    published(ready, work, {f"{i}.bin": b"new %d" % i for i in range(20)} | {f"{i}.txt": b"new" for i in range(20)})
    ready.git(work, "push", "-q", "origin", "other")
    elsewhere = clone(ready)
    ready.git(elsewhere, "checkout", "-q", "main")
    shutil.rmtree(elsewhere / ".git/datasets", ignore_errors=True)
    (ready.root / "data").rename(ready.root / "gone")

    told = ready.git(elsewhere, "checkout", "other")
    assert told.stderr.count("git datasets pull") == 1
    assert {(elsewhere / f"{i}.txt").read_bytes() for i in range(20)} == {b"new"}
    assert (elsewhere / "3.bin").read_text() == pointer(b"new 3")
    assert is_clean(ready, elsewhere)
    assert not (elsewhere / ".git/index.lock").exists()

    (ready.root / "gone").rename(ready.root / "data")
    ready.gd(elsewhere, "pull")
    assert digests(elsewhere) == digests(work)
    assert is_clean(ready, elsewhere)


def test_an_interrupted_checkout_is_finished_by_checkout_and_pull(ready: Machine, work: Path) -> None:
    published(ready, work, {f"{i}.bin": os.urandom(3_000_000) for i in range(12)})
    ready.git(ready.root, "clone", "-q", "--no-checkout", "origin.git", "elsewhere")
    elsewhere = ready.root / "elsewhere"
    ready.run("timeout", "-s", "INT", "0.4", "git", "checkout", "main", cwd=elsewhere, check=False)
    (elsewhere / ".git/index.lock").unlink(missing_ok=True)  # git itself may have been cut short
    ready.git(elsewhere, "checkout", "-qf", "main")
    ready.gd(elsewhere, "pull")
    assert digests(elsewhere) == digests(work)
    assert ready.gd(elsewhere, "fsck").returncode == 0


def test_a_clone_without_the_tool_is_repaired_by_install_and_pull(ready: Machine, work: Path, tmp_path: Path) -> None:
    published(ready, work, {"a.bin": b"a" * 9000, "b.bin": b"b"})
    ready.gd(ready.root, "uninstall")
    elsewhere = clone(ready)
    assert (elsewhere / "a.bin").read_text() == pointer(b"a" * 9000)
    (elsewhere / "b.bin").write_bytes(b"edited without the tool")
    ready.git(elsewhere, "commit", "-qam", "raw")

    ready.gd(elsewhere, "install")
    ready.gd(elsewhere, "pull")
    assert (elsewhere / "a.bin").read_bytes() == b"a" * 9000
    found = ready.gd(elsewhere, "fsck", check=False)
    assert found.returncode == 1
    assert "b.bin" in found.stdout
    assert "b.bin" in ready.git(elsewhere, "push", "origin", "main").stderr


def test_a_filter_that_cannot_start_has_a_one_line_recovery(ready: Machine, work: Path) -> None:
    published(ready, work, {"a.bin": b"a" * 9000, "b.txt": b"text"})
    ready.git(ready.root, "config", "--global", "filter.datasets.process", "/nope")
    assert ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere", check=False).returncode != 0
    elsewhere = ready.root / "elsewhere"
    ready.gd(elsewhere, "install")
    ready.git(elsewhere, "checkout", "-f", "HEAD")
    assert digests(elsewhere) == digests(work)
    assert is_clean(ready, elsewhere)


def test_worktrees_and_submodules_share_the_store(ready: Machine, work: Path) -> None:
    published(ready, work, {"a.bin": b"a" * 9000, "b.bin": b"b" * 300_000})
    filled = clone(ready, "filled")
    (ready.root / "data").rename(ready.root / "gone")
    ready.git(filled, "worktree", "add", "-q", "../linked", "-b", "side")
    linked = ready.root / "linked"
    assert digests(linked) == digests(work)
    (linked / "c.bin").write_bytes(b"c" * 9000)
    commit(ready, linked)
    for verb in ("pull", "fsck", "status"):
        assert ready.gd(linked, verb).returncode == 0
    assert is_clean(ready, linked)
    assert not (linked / ".git").is_dir()

    (ready.root / "gone").rename(ready.root / "data")
    parent = ready.repo("parent")
    ready.git(parent, "submodule", "add", "-q", ready.root / "origin.git", "sub")
    ready.git(parent, "commit", "-qm", "a submodule")
    again = ready.root / "again"
    ready.git(ready.root, "clone", "-q", "parent", "again")
    ready.git(again, "submodule", "update", "--init", "-q")
    assert digests(again / "sub") == digests(work)
    for verb in ("pull", "fsck", "status"):
        assert ready.gd(again / "sub", verb).returncode == 0


def test_an_empty_file_stays_an_empty_blob(ready: Machine, work: Path) -> None:
    (work / "e.bin").touch()
    commit(ready, work)
    assert blob(ready, work, "HEAD:e.bin") == ""
    ready.git(work, "checkout", "-q", "HEAD~1")
    ready.git(work, "checkout", "-q", "-")
    assert (work / "e.bin").read_bytes() == b""
    assert is_clean(ready, work)
    ready.git(work, "diff", "--exit-code")


def test_a_pointer_is_never_cleaned_twice(ready: Machine, work: Path) -> None:
    published(ready, work, {"a.bin": b"a" * 9000})
    text = pointer(b"a" * 9000)
    cleaned = subprocess.run(
        [GIT_DATASETS, "clean", "--", "a.bin"],
        cwd=work,
        env=ready.env,
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    assert cleaned.stdout == text.encode()
    elsewhere = ready.root / "elsewhere"
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    assert (elsewhere / "a.bin").read_text() == text
    (elsewhere / "a.bin").touch()
    ready.git(elsewhere, "add", "a.bin")
    ready.gd(elsewhere, "add", "a.bin")
    assert is_clean(ready, elsewhere)
    assert blob(ready, elsewhere, ":a.bin") == text


def test_a_symlink_under_a_pattern_stays_a_symlink(ready: Machine, work: Path) -> None:
    (work / "real.bin").write_bytes(b"real" * 3000)
    (work / "link.bin").symlink_to("real.bin")
    ready.gd(work, "add", ".")
    ready.git(work, "commit", "-qm", "a link")
    ready.git(work, "push", "-q", "-u", "origin", "main")
    elsewhere = clone(ready)
    assert ready.git(elsewhere, "ls-files", "-s", "link.bin").stdout.startswith("120000")
    assert os.readlink(elsewhere / "link.bin") == "real.bin"
    assert "link.bin" not in ready.gd(elsewhere, "fsck").stdout


@pytest.mark.parametrize("verb", ["git", "fast"])
def test_the_executable_bit_survives(ready: Machine, work: Path, verb: str) -> None:
    (work / "t.bin").write_bytes(b"#!/bin/sh\n" * 1000)
    (work / "t.bin").chmod(0o755)
    ready.git(work, "add", "t.bin") if verb == "git" else ready.gd(work, "add", "t.bin")
    ready.git(work, "commit", "-qm", "executable")
    ready.git(work, "push", "-q", "-u", "origin", "main")
    assert ready.git(work, "ls-tree", "HEAD", "t.bin").stdout.startswith("100755")
    delayed = clone(ready, "delayed")
    ready.git(ready.root, "clone", "-q", "origin.git", "pulled", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    ready.gd(ready.root / "pulled", "pull")
    for where in (delayed, ready.root / "pulled"):
        assert (where / "t.bin").stat().st_mode & 0o777 == 0o755
        assert (where / "t.bin").read_bytes() == b"#!/bin/sh\n" * 1000
        assert is_clean(ready, where)


def packet(text: bytes) -> bytes:
    return b"%04x" % (len(text) + 4) + text


def scripted(machine: Machine, work: Path, *packets: bytes) -> tuple[bytes, str, int]:
    hello = packet(b"git-filter-client\n") + packet(b"version=2\n") + b"0000"
    hello += packet(b"capability=clean\n") + packet(b"capability=smudge\n") + packet(b"capability=delay\n") + b"0000"
    done = subprocess.run(
        [GIT_DATASETS, "filter-process"],
        cwd=work, env=machine.env, input=hello + b"".join(packets), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stdout, done.stderr.decode(), done.returncode


def smudge(name: str, text: str, *extra: bytes) -> bytes:
    keys = [b"command=smudge\n", b"pathname=" + name.encode() + b"\n", *extra]
    content = packet(text.encode()) if text else b""
    return b"".join(map(packet, keys)) + b"0000" + content + b"0000"


def test_the_delay_protocol_as_scripted(ready: Machine, work: Path) -> None:
    published(ready, work, {"a.bin": b"a" * 9000, "b.bin": b"b" * 10})
    shutil.rmtree(work / ".git/datasets")
    names = {"a.bin": pointer(b"a" * 9000), "b.bin": pointer(b"b" * 10), "gone.bin": pointer(b"never pushed")}
    delay = [b"can-delay=1\n", b"ref=refs/heads/main\n", b"colour=blue\n"]
    asked = [smudge(name, text, *delay) for name, text in names.items()]
    listing = packet(b"command=list_available_blobs\n") + b"0000"
    unknown = packet(b"command=sing\n") + packet(b"pathname=song\n") + b"0000" + b"0000"
    again = [smudge(name, "") for name in names]  # git sends what was delayed without its content

    out, err, code = scripted(ready, work, *asked, unknown, listing, *again, listing)
    assert code == 0
    assert out.count(b"status=delayed\n") == 3
    for name in names:
        assert b"pathname=" + name.encode() + b"\n" in out
    assert b"a" * 9000 in out
    assert names["gone.bin"].encode() in out
    assert "gone.bin" in err
    assert "a.bin" not in err
    assert out.endswith(b"0000" + packet(b"status=success\n") + b"0000"), "the last listing is empty"

    whole = b"".join([*asked, listing, *again])
    for cut in range(0, len(whole), 97):
        assert scripted(ready, work, whole[:cut])[2] == 0


def test_a_repository_without_our_attributes_is_left_alone(ready: Machine) -> None:
    origin = ready.bare()
    work = ready.repo()
    (work / "big.bin").write_bytes(os.urandom(500_000))
    commit(ready, work)
    ready.git(work, "push", "-q", origin, "main")
    ready.git(ready.root, "config", "--global", "filter.datasets.process", f"touch {ready.root}/started; exit 1")
    cloned = ready.git(ready.root, "clone", "origin.git", "elsewhere")
    assert "datasets" not in cloned.stderr
    assert not (ready.root / "started").exists()
    assert is_clean(ready, ready.root / "elsewhere")
    assert not (ready.root / "elsewhere/.git/datasets").exists()


def test_uninstall_leaves_nothing_behind(ready: Machine, work: Path) -> None:
    ready.gd(work, "install", "--local")
    ready.gd(work, "uninstall")
    for scope in ("--global", "--local"):
        assert "datasets" not in ready.git(work, "config", scope, "--list").stdout.replace("datasets.known", "")
    assert not [hook for hook in (work / ".git/hooks").iterdir() if not hook.name.endswith(".sample")]


def test_a_program_that_moved_fails_an_add_loudly(ready: Machine, work: Path) -> None:
    for key in ("process", "clean"):
        ready.git(work, "config", "--global", f"filter.datasets.{key}", f"/moved/away/git-datasets {key} -- %f")
    (work / "x.bin").write_bytes(b"x" * 9000)
    assert ready.git(work, "add", "x.bin", check=False).returncode != 0
    assert ready.git(work, "ls-files", "x.bin").stdout == ""
    ready.gd(work, "install")
    ready.git(work, "add", "x.bin")
    assert blob(ready, work, ":x.bin") == pointer(b"x" * 9000)


def test_touch_makes_no_diff_and_no_write(ready: Machine, work: Path) -> None:
    published(ready, work, {f"{i}.bin": b"content %d" % i * 500 for i in range(200)})
    before = digests(work / ".git/datasets")
    for file in work.glob("*.bin"):
        file.touch()
    assert is_clean(ready, work)
    assert is_clean(ready, work)
    assert {k: v for k, v in digests(work / ".git/datasets").items() if "pack" in k} == {
        k: v for k, v in before.items() if "pack" in k
    }


def test_one_filter_process_serves_a_whole_checkout(ready: Machine, work: Path) -> None:
    published(ready, work, {f"d{i % 50}/{i}.bin": b"content %d" % i for i in range(5000)})
    starts = ready.root / "starts"
    program = ready.git(work, "config", "filter.datasets.process").stdout.strip()
    ready.git(work, "config", "--global", "filter.datasets.process", f"echo start >> {starts}; {program}")
    elsewhere = clone(ready)
    assert starts.read_text().count("start") == 1
    assert len(list(elsewhere.rglob("*.bin"))) == 5000
    content = (elsewhere / "d7/7.bin").read_bytes()
    assert hashlib.sha256(content).hexdigest() == hashlib.sha256(b"content 7").hexdigest()
