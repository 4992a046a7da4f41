from __future__ import annotations

import pytest

from gds_lfs.git.command import failure, reason


@pytest.mark.parametrize(
    ("complaints", "told"),
    [
        (b"", ""),
        (b"something odd\n", "something odd"),
        (b"warning: x\nfatal: not a git repository\n", "not a git repository"),
        (b"error: one\nfatal: two\n", "two"),
        (
            b"fatal: dubious\nTo add an exception, call:\n\n\tgit config x\n",
            "dubious To add an exception, call: git config x",
        ),
        (b"fatal: caf\xe9\n", "caf\ufffd"),
    ],
)
def test_what_git_complains_about(complaints, told):
    assert reason(complaints) == told


def test_an_error_names_the_command():
    assert str(failure(["--literal-pathspecs", "ls-files", "-z"], 128, b"")) == "git ls-files: exit code 128"
    assert str(failure(["-C", "/some/where", "ls-files"], 1, b"fatal: no\n")) == "git ls-files: no"
