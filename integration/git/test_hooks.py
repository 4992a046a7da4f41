from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gds_lfs.git import hooks
from gds_lfs.git.repo import Repo


@pytest.fixture
def repo(top):
    return Repo.discover(top)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def program(tmp_path, log) -> list[str]:
    """A stand-in for ours, in a folder that needs quoting: logs its arguments, and its input for pre-push."""
    body = f'echo "ours $*" >>{log}\n[ "$2" != pre-push ] || cat >>{log}\n[ ! -e {tmp_path}/fail ]'
    return [str(script(tmp_path / "it's my bin" / "git-datasets", body))]


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()}


def test_install_twice_then_uninstall(repo, top, program):
    folder = top / ".git" / "hooks"
    before = snapshot(folder)
    first = hooks.install(repo, program)
    assert first.folder == folder
    assert first.changed == first.current == list(hooks.NAMES)
    assert all((folder / name).stat().st_mode & 0o111 for name in hooks.NAMES)
    installed = snapshot(folder)
    second = hooks.install(repo, program)
    assert (second.changed, second.current) == ([], list(hooks.NAMES))
    assert snapshot(folder) == installed
    assert hooks.status(repo).current == list(hooks.NAMES)
    assert hooks.uninstall(repo).changed == list(hooks.NAMES)
    assert snapshot(folder) == before
    assert hooks.status(repo).missing == list(hooks.NAMES)
    assert hooks.uninstall(repo).changed == []


def test_every_hook_runs(repo, top, git, program, log, tmp_path):
    hooks.install(repo, program)
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("checkout", "-q", "-b", "side")
    git("commit", "-q", "--allow-empty", "-m", "y")
    git("checkout", "-q", "main")
    git("commit", "-q", "--allow-empty", "-m", "z")
    log.unlink()
    git("merge", "-q", "--no-edit", "side")
    assert lines(log) == ["ours hook pre-merge-commit", "ours hook post-merge 0"]
    git("init", "-q", "--bare", "r.git", cwd=tmp_path)
    log.unlink()
    git("push", "-q", "../r.git", "main")
    assert lines(log)[0] == "ours hook pre-push ../r.git ../r.git"
    assert lines(log)[1].startswith("refs/heads/main ")
    log.unlink()
    git("commit", "-q", "--allow-empty", "-m", "w")
    assert lines(log) == ["ours hook pre-commit", "ours hook post-commit"]


def test_the_hook_from_before_comes_first(repo, top, git, program, log, tmp_path):
    folder = top / ".git" / "hooks"
    before = script(folder / "pre-commit", f'echo "before $#" >>{log}; [ ! -e {tmp_path}/before-fails ]').read_text()
    hooks.install(repo, program)
    hooks.install(repo, program)
    git("commit", "-q", "--allow-empty", "-m", "x")
    assert lines(log)[:2] == ["before 0", "ours hook pre-commit"]
    log.unlink()
    (tmp_path / "before-fails").touch()
    with pytest.raises(AssertionError):
        git("commit", "-q", "--allow-empty", "-m", "x")
    assert lines(log) == ["before 0"]
    hooks.uninstall(repo)
    assert (folder / "pre-commit").read_text() == before
    assert not (folder / "pre-commit.before-datasets").exists()


def test_our_failure_stops_a_commit_but_no_checkout(repo, git, program, tmp_path):
    hooks.install(repo, program)
    git("commit", "-q", "--allow-empty", "-m", "x")
    (tmp_path / "fail").touch()
    with pytest.raises(AssertionError):
        git("commit", "-q", "--allow-empty", "-m", "x")
    git("checkout", "-q", "-b", "other")


def test_a_checkout_hook_from_before_keeps_its_exit_code(repo, top, git, program, log):
    git("commit", "-q", "--allow-empty", "-m", "x")
    script(top / ".git" / "hooks" / "post-checkout", "exit 3")
    hooks.install(repo, program)
    result = subprocess.run(["git", "checkout", "-q", "-b", "other"], cwd=top, check=False)
    assert result.returncode == 1  # what git makes of it
    assert lines(log)[0].startswith("ours hook post-checkout")


def test_both_get_what_is_pushed(repo, top, git, program, log, tmp_path):
    script(top / ".git" / "hooks" / "pre-push", f"sed 's/^/before /' >>{log}")
    hooks.install(repo, program)
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("branch", "side")
    git("init", "-q", "--bare", "r.git", cwd=tmp_path)
    log.unlink()
    git("push", "-q", "../r.git", "main", "side")
    pushed = [line for line in lines(log) if line.startswith("refs/")]
    assert len(pushed) == 2
    assert lines(log) == [*(f"before {line}" for line in pushed), "ours hook pre-push ../r.git ../r.git", *pushed]
    log.unlink()
    git("push", "-q", "../r.git", "main")
    assert lines(log) == ["ours hook pre-push ../r.git ../r.git"]


def test_a_program_that_is_gone(repo, top, git, program, tmp_path):
    hooks.install(repo, program)
    git("commit", "-q", "--allow-empty", "-m", "x")
    Path(program[0]).unlink()
    result = subprocess.run(
        ["git", "commit", "--allow-empty", "-m", "x"], cwd=top, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert f"git datasets: cannot start {program[0]}, which `git datasets install` recorded" in result.stderr
    assert "run `git datasets install` again, or delete pre-commit" in result.stderr
    result = subprocess.run(["git", "checkout", "-b", "other"], cwd=top, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "run `git datasets install` again." in result.stderr


def test_an_older_text_is_replaced_and_an_edited_one_is_not(repo, top, program):
    hooks.install(repo, ["/gone/git-datasets"])
    edited = top / ".git" / "hooks" / "pre-push"
    edited.write_bytes(edited.read_bytes() + b"echo mine\n")
    text = edited.read_bytes()
    report = hooks.install(repo, program)
    assert report.edited == ["pre-push"]
    assert "pre-push" not in report.changed
    assert len(report.changed) == 5
    assert hooks.status(repo).edited == ["pre-push"]
    assert hooks.uninstall(repo).edited == ["pre-push"]
    assert edited.read_bytes() == text


def test_two_foreign_hooks_in_one_place(repo, top, program):
    hooks.install(repo, program)
    folder = top / ".git" / "hooks"
    script(folder / "pre-commit.before-datasets", "exit 0")
    script(folder / "pre-commit", "exit 0")
    report = hooks.install(repo, program)
    assert report.missing == ["pre-commit"]
    assert list(report.paste) == [folder / "pre-commit"]
    script(folder / "pre-commit", report.paste[folder / "pre-commit"])
    assert hooks.install(repo, program).missing == []


def test_a_hook_that_lost_its_run_bit_is_written_again(repo, top, program):
    hooks.install(repo, program)
    (top / ".git" / "hooks" / "pre-commit").chmod(0o644)
    assert hooks.status(repo).missing == ["pre-commit"]
    assert hooks.install(repo, program).changed == ["pre-commit"]


def test_hooks_path_of_this_repository(repo, top, git, program):
    git("config", "core.hooksPath", ".githooks")
    repo = Repo.discover(repo.top)
    report = hooks.install(repo, program)
    assert report.folder == top / ".githooks"
    assert (top / ".githooks" / "pre-commit").exists()
    assert not (top / ".git" / "hooks" / "pre-commit").exists()


def test_hooks_path_with_tracked_files(repo, top, git, program):
    script(top / ".githooks" / "pre-commit", "exit 0")
    git("add", ".")
    git("config", "core.hooksPath", ".githooks")
    repo = Repo.discover(repo.top)
    before = snapshot(top / ".githooks")
    report = hooks.install(repo, program)
    assert snapshot(top / ".githooks") == before
    assert report.changed == []
    assert "is tracked in this repository" in report.reason
    assert report.paste[top / ".githooks" / "pre-commit"] == 'git datasets hook pre-commit "$@" || exit $?'
    assert report.paste[top / ".githooks" / "post-merge"] == 'git datasets hook post-merge "$@" || true'
    for path, line in report.paste.items():
        script(path, line)
    assert hooks.install(repo, program).current == list(hooks.NAMES)
    assert hooks.status(repo).missing == []
    hooks.uninstall(repo)
    assert len(list((top / ".githooks").iterdir())) == len(hooks.NAMES)


def test_hooks_path_of_husky(repo, top, git, program):
    script(top / ".husky" / "_" / "pre-commit", '. "$(dirname "$0")/h"')
    (top / ".husky" / "_" / ".gitignore").write_text("*")
    git("config", "core.hooksPath", ".husky/_")
    repo = Repo.discover(repo.top)
    report = hooks.install(repo, program)
    assert "generated by another tool" in report.reason
    assert list(report.paste) == [top / ".husky" / name for name in hooks.NAMES]
    script(top / ".husky" / "pre-commit", report.paste[top / ".husky" / "pre-commit"])
    assert hooks.install(repo, program).current == ["pre-commit"]
    assert hooks.status(repo).current == ["pre-commit"]


def test_hooks_path_of_the_user(repo, git, program, tmp_path):
    git("config", "--global", "core.hooksPath", str(tmp_path / "all"))
    repo = Repo.discover(repo.top)
    report = hooks.install(repo, program)
    assert "in the global config" in report.reason
    assert not (tmp_path / "all").exists()
    assert report.paste[tmp_path / "all" / "pre-commit"].startswith("'" + str(tmp_path))


def test_hooks_that_are_switched_off(repo, git, program):
    git("config", "core.hooksPath", "/dev/null")
    repo = Repo.discover(repo.top)
    report = hooks.install(repo, program)
    assert "which is no folder" in report.reason
    assert report.missing == list(hooks.NAMES)


def test_a_linked_worktree_shares_its_hooks(repo, top, git, program, tmp_path, log):
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("worktree", "add", "-q", "../w")
    report = hooks.install(Repo.discover(tmp_path / "w"), program)
    assert report.folder == top / ".git" / "hooks"
    git("worktree", "add", "-q", "../v")
    assert lines(log)[0].startswith("ours hook post-checkout " + "0" * 40)


FRAMEWORK = """\
# File generated by pre-commit: https://pre-commit.com
here=$(cd "$(dirname "$0")" && pwd)
echo framework >>{log}
[ -z "$PRE_COMMIT_RUNNING_LEGACY" ] || exit 9
if [ -x "$here/pre-commit.legacy" ]; then
  PRE_COMMIT_RUNNING_LEGACY=1 "$here/pre-commit.legacy" "$@" || exit $?
fi"""


def install_framework(folder: Path, log: Path) -> None:
    """What `pre-commit install` does: another hook moves to .legacy and is called from there."""
    place = folder / "pre-commit"
    if place.exists() and "pre-commit.com" not in place.read_text().split("before=")[0]:
        place.replace(folder / "pre-commit.legacy")
    script(place, FRAMEWORK.format(log=log))


@pytest.mark.parametrize("order", ["framework ours", "ours framework", "framework ours framework"])
def test_the_pre_commit_framework(repo, top, git, program, log, order):
    folder = top / ".git" / "hooks"
    for step in order.split():
        if step == "ours":
            hooks.install(repo, program)
        else:
            install_framework(folder, log)
    assert hooks.install(repo, program).changed == []
    assert "pre-commit" in hooks.status(repo).current
    git("commit", "-q", "--allow-empty", "-m", "x")
    assert sorted(lines(log)) == ["framework", "ours hook post-commit", "ours hook pre-commit"]
    hooks.uninstall(repo)
    log.unlink()
    git("commit", "-q", "--allow-empty", "-m", "x")
    assert lines(log) == ["framework"]
