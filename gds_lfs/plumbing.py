"""The commands that git starts: the filter, the merge driver, the hooks. Nobody types them; `-h` does not list them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gds_lfs.errors import GitDatasetsError

if TYPE_CHECKING:
    from gds_lfs.porcelain.messages import Messages
    from gds_lfs.porcelain.workspace import Workspace

PIPE = 1 << 16
"""What a pipe holds, in bytes."""


def open_workspace(messages: Messages) -> Workspace:
    """The repository around the current folder; raises NotARepositoryError."""
    from gds_lfs.porcelain.workspace import Workspace

    return Workspace.open(messages)


@click.command("filter-process", hidden=True)
@click.pass_obj
def filter_process(messages: Messages) -> None:
    """What git starts for all files of one command (filter.datasets.process)."""
    from gds_lfs.git.filter_process import serve
    from gds_lfs.porcelain.filters import Filter

    session = Filter(open_workspace(messages))
    try:
        with (
            open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stdin,
            # An answer leaves in one system call, whatever PYTHONUNBUFFERED says.
            open(sys.stdout.fileno(), "wb", buffering=PIPE, closefd=False) as stdout,
        ):
            serve(stdin, stdout, session)
    finally:
        session.finish()


@click.command(hidden=True)
@click.argument("path", type=click.Path(path_type=bytes))
@click.pass_obj
def clean(messages: Messages, path: bytes) -> None:
    """filter.datasets.clean"""
    from gds_lfs.porcelain.filters import clean_one

    clean_one(open_workspace(messages), path, sys.stdin.buffer, sys.stdout.buffer)


@click.command(hidden=True)
@click.argument("path", type=click.Path(path_type=bytes))
@click.pass_obj
def smudge(messages: Messages, path: bytes) -> None:
    """filter.datasets.smudge"""
    from gds_lfs.porcelain.filters import smudge_one

    smudge_one(open_workspace(messages), path, sys.stdin.buffer, sys.stdout.buffer)


@click.command("merge-driver", hidden=True)
@click.argument("ancestor", type=click.Path(path_type=Path))
@click.argument("ours", type=click.Path(path_type=Path))
@click.argument("theirs", type=click.Path(path_type=Path))
@click.argument("path", type=click.Path(path_type=bytes))
@click.pass_obj
def merge_driver(messages: Messages, ancestor: Path, ours: Path, theirs: Path, path: bytes) -> None:
    """merge.datasets.driver"""
    from gds_lfs.porcelain.merging import merge

    if not merge(messages, ancestor, ours, theirs, path):
        sys.exit(1)


@click.command(hidden=True)
@click.argument("name")
@click.argument("args", nargs=-1)
@click.pass_obj
def hook(messages: Messages, name: str, args: tuple[str, ...]) -> None:
    """What the hooks call. One that comes after the fact reports an error and succeeds."""
    from gds_lfs.porcelain import events, sync

    if name in ("pre-commit", "pre-merge-commit"):
        events.pre_commit(open_workspace(messages))
    elif name == "pre-push":
        lines = sys.stdin.read().splitlines()
        workspace = open_workspace(messages)
        sync.pre_push(workspace, workspace.named(args[0] if args else "origin"), lines)
    else:
        try:
            workspace = open_workspace(messages)
            events.post_commit(workspace) if name == "post-commit" else events.after_checkout(workspace)
        except GitDatasetsError as error:
            messages.warn(str(error))
