"""link: which git remote, or which URL, a place of data is for."""

from __future__ import annotations

from pathlib import Path

from machines import Machine

OLD = b"a" * 3000


def test_a_push_to_a_remotes_own_url_uses_its_settings(ready: Machine, work: Path) -> None:
    mirror = ready.bare("mirror.git")
    ready.git(work, "remote", "set-url", "--push", "origin", mirror)
    ready.gd(work, "link", "--remote", "origin", ready.root / "mine")
    for number, url in enumerate((ready.root / "origin.git", mirror, f"file://{mirror}")):
        (work / "a.bin").write_bytes(b"%d" % number * 3000)
        ready.git(work, "add", "-A")
        ready.git(work, "commit", "-qm", "a")
        ready.git(work, "push", "-q", url, "main")
        assert len(list((ready.root / "mine").rglob("*.pack"))) == number + 1, url
    ready.git(work, "push", "-q", ready.bare("third.git"), "main")
    assert list((ready.root / "data").rglob("*.pack")), "another URL goes where all else goes"


def test_a_url_may_be_linked_to_a_place_of_its_own(ready: Machine, work: Path) -> None:
    one, two = ready.bare("one.git"), ready.bare("two.git")
    ready.gd(work, "link", "--remote", one, ready.root / "first")
    ready.gd(work, "link", "--remote", f"file://{two}", ready.root / "second")
    assert ready.git(work, "remote").stdout == "origin\n"
    (work / "a.bin").write_bytes(OLD)
    ready.git(work, "add", "-A")
    ready.git(work, "commit", "-qm", "a")
    ready.git(work, "push", "-q", one, "main")
    assert list((ready.root / "first").rglob("*.pack"))
    assert not (ready.root / "second").exists()
    ready.git(work, "push", "-q", f"file://{two}", "main")
    assert list((ready.root / "second").rglob("*.pack"))
    assert not (ready.root / "data").exists()


def test_a_password_in_a_remotes_url_is_not_shown(ready: Machine, work: Path) -> None:
    ready.git(work, "rm", "-qf", ".datasetsconfig")
    (work / "a.bin").write_bytes(OLD)
    ready.git(work, "add", "-A")
    ready.git(work, "commit", "-qm", "a")
    refused = ready.gd(work, "push", "https://user:secret@git.invalid/x.git", check=False)
    assert refused.returncode == 8
    assert "git.invalid/x.git" in refused.stderr
    assert "secret" not in refused.stderr
