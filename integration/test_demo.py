"""The demo, and what its user finds in the folder that it leaves."""

from __future__ import annotations

from machines import Machine, is_clean


def test_the_demo_leaves_repositories_that_work_and_the_users_config_as_it_was(machine: Machine) -> None:
    config = (machine.home / ".gitconfig").read_bytes()
    machine.gd(machine.root, "demo", "demo")
    for name in ("shapes", "elsewhere"):
        repo = machine.root / "demo" / name
        assert is_clean(machine, repo)
        index = repo / "index.py"
        index.write_text(index.read_text() + "\n    def sides(image: File[png]) -> int:\n        return 4\n")
        assert "sides computed for 26" in machine.git(repo, "commit", "-am", "sides").stderr
        machine.gd(repo, "fsck")
        assert is_clean(machine, repo)
    machine.git(machine.root / "demo/shapes", "push", "-q")
    assert (machine.home / ".gitconfig").read_bytes() == config
