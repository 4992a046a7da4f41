"""The README speaks of every command and every exit code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gds_lfs import errors
from gds_lfs.cli import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "gds_lfs/git-datasets.1").read_text(encoding="utf-8").replace("\\-", "-")


@pytest.mark.parametrize("name", [name for name, command in cli.commands.items() if not command.hidden])
def test_every_command_is_in_the_readme(name: str) -> None:
    (table,) = re.findall(r"## Commands\n(.*?)\n\n[^|\n]", README, re.DOTALL)
    assert f"`{name}`" in table


def test_the_manual_page_has_every_command_and_no_other() -> None:
    (commands,) = re.findall(r"\.SH COMMANDS\n(.*?)\.SH", PAGE, re.DOTALL)
    visible = [name for name, command in cli.commands.items() if not command.hidden]
    assert re.findall(r"\.TP\n\.B (.*)\n", commands) == visible


@pytest.mark.parametrize("command", cli.commands.values(), ids=cli.commands)
def test_every_command_has_help(command: object) -> None:
    assert getattr(command, "help", None)


def test_every_exit_code_is_in_the_readme() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.GitDatasetsError)]
    (sentence,) = re.findall(r"Exit codes: .*?\.\n", README, re.DOTALL)
    documented = {int(number) for number in re.findall(r"\b\d+\b", sentence)}
    assert {c.exit_code for c in classes} | {0, 2, 130} == documented
    (sentence,) = re.findall(r"\.SH EXIT STATUS\n(.*?)\.SH", PAGE, re.DOTALL)
    assert {int(number) for number in re.findall(r"\b\d+\b", sentence)} == documented
