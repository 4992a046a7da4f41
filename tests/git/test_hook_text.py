from __future__ import annotations

import pytest

from gds_lfs.git.hook_text import NAMES, calls_us, is_edited, is_ours, line, render

PROGRAM = ["/opt/my bin/git-datasets"]


@pytest.mark.parametrize("name", NAMES)
def test_a_rendered_hook_is_ours_and_unedited(name):
    text = render(name, PROGRAM)
    assert text.startswith(b"#!/bin/sh\n# git-datasets-hook 1 sha256:")
    assert text == render(name, PROGRAM)
    assert is_ours(text)
    assert not is_edited(text)
    assert f"'/opt/my bin/git-datasets' hook {name} \"$@\"".encode() in text
    assert name.startswith("post-") == (b'exit "$result"' in text)


def test_an_edit_is_seen():
    text = render("pre-commit", PROGRAM)
    assert is_edited(text.replace(b"my bin", b"your bin"))
    assert is_edited(text + b"\n")
    assert not is_edited(b"#!/bin/sh\n")
    assert not is_ours(b"#!/bin/sh\necho git-datasets-hook\n")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("program", [PROGRAM, ["git", "datasets"], ["/venv/bin/python", "-m", "gds_lfs"]])
def test_lines_to_paste(name, program):
    pasted = line(name, program)
    assert pasted.endswith(' "$@" || true' if name.startswith("post-") else ' "$@" || exit $?')
    assert calls_us(name, b"#!/bin/sh\n" + pasted.encode() + b"\n")
    assert not calls_us(name, b"# " + pasted.encode())
    assert not calls_us(name, b"git-lfs " + name.encode())
    assert not any(calls_us(other, pasted.encode()) for other in NAMES if other != name)
