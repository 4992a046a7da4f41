"""track, untrack, link and add: what they take, and what they refuse before anything is changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import Machine, blob, is_clean, pointer


def is_tracked(machine: Machine, work: Path, name: str) -> bool:
    return machine.git(work, "check-attr", "filter", "--", name).stdout.endswith(": datasets\n")


def test_a_file_name_is_found_wherever_the_user_stands(ready: Machine, work: Path) -> None:
    (work / "sub").mkdir()
    ready.gd(work / "sub", "track", "--filename", "a b[1].dat", "w\\x.dat", work / "sub/absolute.dat", "./dotted.dat")
    for name in ("a b[1].dat", "w\\x.dat", "absolute.dat", "dotted.dat"):
        assert is_tracked(ready, work / "sub", name)
    for name in ("a b1.dat", "wx.dat", "../absolute.dat"):
        assert not is_tracked(ready, work / "sub", name)
    refused = ready.gd(work / "sub", "track", "--filename", "../up.dat", check=False)
    assert refused.returncode == 4
    assert "up.dat" in refused.stderr
    assert not is_tracked(ready, work, "up.dat")


def test_a_pattern_may_begin_with_a_dot_and_a_slash(ready: Machine, work: Path) -> None:
    ready.gd(work, "track", "./raw/*.dat")
    assert is_tracked(ready, work, "raw/a.dat")
    assert not is_tracked(ready, work, "sub/raw/a.dat")
    ready.gd(work, "untrack", "./raw/*.dat")
    assert not is_tracked(ready, work, "raw/a.dat")
    (work / "sub").mkdir()
    assert ready.gd(work / "sub", "track", "../*.dat", check=False).returncode == 4


@pytest.mark.parametrize(("url", "code"), [("", 8), ("s3:/bucket/x", 8), ("http://example.org/x", 8), ("a\nb", 4)])
def test_a_url_that_no_push_could_use_is_refused_at_once(ready: Machine, work: Path, url: str, code: int) -> None:
    assert ready.gd(work, "link", url, check=False).returncode == code
    if "\n" not in url:
        assert ready.gd(work, "link", "--local", url, check=False).returncode == code
    assert is_clean(ready, work)
    assert ready.git(work, "config", "--get-all", "datasets.remote", check=False).stdout == ""


def test_a_folder_whose_drive_is_not_mounted_is_linked_with_a_word_about_it(ready: Machine, work: Path) -> None:
    told = ready.gd(work, "link", ready.root / "mnt/data").stderr
    assert f"{ready.root / 'mnt'} is not there" in told
    (ready.root / "mnt").mkdir()
    assert "not there" not in ready.gd(work, "link", ready.root / "mnt/data").stderr


def test_link_changes_nothing_when_it_cannot_stage(ready: Machine, work: Path) -> None:
    (work / ".git/index.lock").touch()
    assert ready.gd(work, "link", ready.root / "other", check=False).returncode == 3
    (work / ".git/index.lock").unlink()
    assert is_clean(ready, work)
    assert ready.gd(work, "link", "--remote", "nosuch", "/x", check=False).returncode == 4


def test_a_relative_url_is_the_same_place_in_every_worktree(ready: Machine, work: Path) -> None:
    ready.gd(work, "link", "../shared")
    (work / "a.bin").write_bytes(b"a" * 3000)
    ready.git(work, "add", "-A")
    ready.git(work, "commit", "-qm", "a")
    (ready.root / "far").mkdir()
    ready.git(work, "worktree", "add", "-q", "../far/away", "-b", "side")
    ready.gd(ready.root / "far/away", "push")
    assert list((ready.root / "shared").rglob("*.pack"))
    assert not (ready.root / "far/shared").exists()


def test_add_names_what_matches_nothing_or_cannot_be_read(ready: Machine, work: Path) -> None:
    (work / ".gitignore").write_text("ignored.bin\n")
    (work / "ignored.bin").write_bytes(b"i")
    for name in ("nothing.bin", "ignored.bin"):
        refused = ready.gd(work, "add", name, check=False)
        assert refused.returncode == 3
        assert name in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    assert ready.git(work, "ls-files", "*.bin").stdout == ""


def test_an_empty_repository_is_nothing_special(ready: Machine) -> None:
    empty = ready.repo("empty")
    assert ready.gd(empty, "add", ".").stderr == ""
    for verb in ("fetch", "pull", "push", "status", "fsck"):
        assert ready.gd(empty, verb).returncode == 0


def test_add_leaves_what_a_sparse_checkout_or_the_user_put_out_of_sight(ready: Machine, work: Path) -> None:
    for name in ("in/a.bin", "out/b.bin", "quiet.bin"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(b"x" * 3000)
    ready.gd(work, "add", ".")
    ready.git(work, "commit", "-qm", "files")
    ready.git(work, "sparse-checkout", "set", "--cone", "in")
    assert not (work / "out").exists()
    (work / "quiet.bin").write_bytes(b"y" * 3000)
    ready.git(work, "update-index", "--assume-unchanged", "quiet.bin")
    (work / "in/a.bin").write_bytes(b"z" * 3000)
    ready.gd(work, "add", ".")
    assert ready.git(work, "diff", "--cached", "--name-status").stdout.split() == ["M", "in/a.bin"]


def test_add_keeps_modes_that_the_disk_cannot_tell(ready: Machine, work: Path) -> None:
    for setting in ("core.fileMode", "core.symlinks"):
        ready.git(work, "config", setting, "false")
    (work / "a.bin").write_bytes(b"a" * 3000)
    (work / "link.bin").write_text("a.bin")
    ready.git(work, "add", "a.bin")
    ready.git(work, "update-index", "--chmod=+x", "a.bin")
    target = ready.git(work, "hash-object", "-w", "--no-filters", "link.bin").stdout.strip()
    ready.git(work, "update-index", "--add", "--cacheinfo", f"120000,{target},link.bin")
    (work / "a.bin").write_bytes(b"b" * 3000)
    (work / "link.bin").write_text("b.bin")
    ready.gd(work, "add", ".")
    staged = ready.git(work, "ls-files", "-s", "*.bin").stdout.splitlines()
    assert [line[:6] for line in staged] == ["100755", "120000"]
    assert blob(ready, work, ":a.bin") == pointer(b"b" * 3000)


def test_add_leaves_a_malformed_pointer_as_git_add_does(ready: Machine, work: Path) -> None:
    text = pointer(b"whatever") + "junk\n"
    (work / "bad.bin").write_text(text)
    told = ready.gd(work, "add", "bad.bin")
    assert "bad.bin" in told.stderr
    assert blob(ready, work, ":bad.bin") == text
    ready.git(work, "add", "--renormalize", ".")
    assert ready.git(work, "diff", "--name-only").stdout == ""


def test_help_keeps_its_lines(ready: Machine) -> None:
    told = ready.gd(ready.root, "-h").stdout
    assert "\n  Once:            git datasets install\n" in told


def test_an_install_that_was_forgotten_is_made_up_for(machine: Machine) -> None:
    repo = machine.repo("fresh")
    said = machine.gd(repo, "track", "*.bin").stderr
    assert "installed for this repository" in said
    assert "git datasets install" in said
    (repo / "a.bin").write_bytes(b"a" * 3000)
    machine.git(repo, "add", ".")
    assert blob(machine, repo, ":a.bin") == pointer(b"a" * 3000)
    assert "installed" not in machine.gd(repo, "track", "*.dat").stderr.replace("hooks installed", "")


def test_status_tells_that_the_filter_is_unknown(machine: Machine) -> None:
    repo = machine.repo("fresh")
    (repo / ".gitattributes").write_text("*.bin filter=datasets -text\n")
    done = machine.gd(repo, "status", check=False)
    assert done.returncode == 1
    assert "git datasets install" in done.stdout
    machine.gd(repo, "install")
    assert "does not know" not in machine.gd(repo, "status", check=False).stdout


@pytest.mark.parametrize(("field", "stays"), [("photo", False), ("image", True)])
def test_what_is_left_of_the_template_is_what_was_kept(ready: Machine, field: str, stays: bool) -> None:
    repo = ready.repo("fresh")
    ready.gd(repo, "new")
    text = (repo / "index.py").read_text().replace("image: File", f"{field}: File")
    (repo / "index.py").write_text(text)
    ready.git(repo, "add", "index.py")
    ready.git(repo, "commit", "-qm", "the dataset")
    lines = ready.git(repo, "show", "HEAD:.gitattributes").stdout
    assert ("/image/**" in lines) is stays
    assert f"/{field}/**" in lines
    assert is_clean(ready, repo)


def test_the_templates_pattern_stays_where_files_use_it(ready: Machine) -> None:
    repo = ready.repo("fresh")
    ready.gd(repo, "new")
    (repo / "image").mkdir()
    (repo / "image/mine.jpg").write_bytes(b"\xff\xd8\xff" + b"m" * 3000)
    text = (repo / "index.py").read_text().replace("image: File", "photo: File")
    (repo / "index.py").write_text(text)
    ready.git(repo, "add", "index.py", "image")
    ready.git(repo, "commit", "-qm", "the dataset and a picture of mine")
    assert "/image/**" in ready.git(repo, "show", "HEAD:.gitattributes").stdout
    assert blob(ready, repo, "HEAD:image/mine.jpg").startswith("version git-datasets/1\n")
