"""The command line: arguments in, porcelain called, exit codes out. The only importer of click.

Exit codes are those of `errors.py`; 1 is also "something is wrong here" from status and fsck, 2 a usage error, and
130 an interrupt. Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gds_lfs import __version__
from gds_lfs.errors import DatasetError, GitDatasetsError, NotARepositoryError
from gds_lfs.plumbing import clean, filter_process, hook, merge_driver, open_workspace, smudge
from gds_lfs.porcelain.messages import Messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from gds_lfs.porcelain.workspace import Workspace

INTERRUPTED = 130
SHELL = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """Commands in the order in which a user meets them, instead of the alphabet's."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


@click.group(cls=Commands, context_settings=SHELL)
@click.version_option(__version__, prog_name="git-datasets", message="%(prog)s %(version)s")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
@click.option("-v", "--verbose", is_flag=True, help="Say more: which requests were sent, for one.")
@click.pass_context
def cli(ctx: click.Context, *, quiet: bool, verbose: bool) -> None:
    """Machine-learning datasets in git.

    An index.py declares a dataset; committing it makes its database and files agree with it. git stores small
    pointers, the data goes to a folder or a bucket of yours, and plain git does the rest.

    \b
    Once:            git datasets install
    In a repository: git datasets new, then git commit index.py
    For big files:   git datasets track '*.bin', then plain git
    """  # noqa: D301 - click knows the character, not how it is written
    ctx.obj = Messages(_progress(), quiet=quiet, verbose=verbose or bool(_switch("GIT_DATASETS_VERBOSE")))


def _switch(variable: str) -> bool | None:
    """Whether a variable of the environment says yes; None where it says nothing."""
    chosen = os.environ.get(variable, "").strip().lower()
    return chosen in ("1", "true", "yes", "on") if chosen else None


def _progress() -> Any:
    """A bar where a person watches; GIT_DATASETS_PROGRESS=1 or 0 overrules the guess."""
    chosen = _switch("GIT_DATASETS_PROGRESS")
    if not (sys.stderr.isatty() if chosen is None else chosen):
        return None
    from gds_lfs.terminal import TerminalProgress

    return TerminalProgress()


def _settled(messages: Messages) -> Workspace:
    """The repository, after what an unfinished commit left in it is settled."""
    from gds_lfs.porcelain import recovery

    workspace = open_workspace(messages)
    recovery.settle(workspace)
    return workspace


@cli.command()
@click.option("--local", is_flag=True, help="Set it up in this repository alone, not for your user.")
@click.option("--lfs-agent", is_flag=True, help="Have git-lfs move this repository's objects through our remotes.")
@click.option("--remote", "url", metavar="URL", help="With --lfs-agent: the folder or bucket that data goes to.")
@click.option("--for", "git_remote", metavar="REMOTE", help="With --lfs-agent: only for this git remote (name or URL).")
@click.option("--endpoint", metavar="URL", help="With --remote: the S3 server, where it is not AWS.")
@click.option("--region", help="With --remote: the S3 bucket's region.")
@click.pass_obj
def install(
    messages: Messages,
    *,
    local: bool,
    lfs_agent: bool,
    url: str | None,
    git_remote: str | None,
    endpoint: str | None,
    region: str | None,
) -> None:
    """Set git up, once per user; inside a repository with data also its hooks.

    Writes the filter and the merge driver to your git config (filter.datasets.*, merge.datasets.*). With --lfs-agent
    it sets up git-lfs in this repository instead (lfs.customtransfer.datasets.*), and nothing else.
    """
    from gds_lfs.porcelain import install as verbs

    if lfs_agent:
        from gds_lfs.porcelain.install_lfs import install_agent

        install_agent(open_workspace(messages), url, git_remote, endpoint, region)
        return
    if url or git_remote or endpoint or region:
        raise click.UsageError("--remote, --for, --endpoint and --region belong to --lfs-agent")
    verbs.install(messages, "local" if local else "global")
    try:
        workspace = open_workspace(messages)
    except NotARepositoryError:
        return
    if verbs.has_data(workspace):
        verbs.install_hooks(workspace)
        verbs.tell_of_pointers(workspace)


@cli.command()
@click.option("--lfs-agent", is_flag=True, help="Only what install --lfs-agent wrote in this repository.")
@click.pass_obj
def uninstall(messages: Messages, *, lfs_agent: bool) -> None:
    """Take back what install wrote, from your git config and from this repository. Where data goes stays written."""
    from gds_lfs.porcelain import install as verbs

    if lfs_agent:
        from gds_lfs.porcelain.install_lfs import uninstall_agent

        removed = uninstall_agent(open_workspace(messages))
        messages.note("removed " + ", ".join(removed) if removed else "the agent was not installed here")
        return
    try:
        workspace = open_workspace(messages)
    except NotARepositoryError:
        workspace = None
    verbs.uninstall(messages, workspace)


@cli.command()
@click.argument("file", default="index.py")
@click.pass_obj
def new(messages: Messages, file: str) -> None:
    """Write a commented index.py to start from, and track it."""
    from gds_lfs.porcelain import tracking

    tracking.new(_settled(messages), file)


@cli.command()
@click.argument("patterns", nargs=-1)
@click.option("--filename", is_flag=True, help="Take each argument as one file's name, not as a pattern.")
@click.pass_obj
def track(messages: Messages, patterns: tuple[str, ...], *, filename: bool) -> None:
    """Track big files by PATTERNS ('*.bin'), or the dataset that an index.py declares.

    Without arguments, list the patterns that are tracked.
    """
    from gds_lfs.porcelain import tracking

    workspace = _settled(messages)
    if patterns:
        tracking.track(workspace, patterns, filename=filename)
    for pattern in () if patterns else tracking.tracked_patterns(workspace):
        messages.result(pattern)


@cli.command()
@click.argument("patterns", nargs=-1, required=True)
@click.pass_obj
def untrack(messages: Messages, patterns: tuple[str, ...]) -> None:
    """Stop tracking PATTERNS; lines of .gitattributes that others wrote stay."""
    from gds_lfs.porcelain import tracking

    tracking.untrack(_settled(messages), patterns)


@cli.command()
@click.argument("url")
@click.option("--local", is_flag=True, help="For this clone alone: .git/config instead of .datasetsconfig.")
@click.option("--remote", "git_remote", metavar="NAME", help="For this git remote of this clone alone.")
@click.option("--endpoint", metavar="URL", help="The S3 server, where it is not AWS. This approves it for you.")
@click.option("--region", help="The S3 bucket's region.")
@click.pass_obj
def link(
    messages: Messages, url: str, *, local: bool, git_remote: str | None, endpoint: str | None, region: str | None
) -> None:
    """Name the place that data is pushed to and fetched from.

    URL is a folder's path (a relative one starts at the top of the work tree) or s3://bucket/prefix. By default it is
    written to .datasetsconfig, which you commit, so that clones find it.
    """
    from gds_lfs.porcelain import linking

    workspace = _settled(messages)
    linking.link(workspace, linking.checked(workspace, url, endpoint, region), git_remote, local=local)


@cli.command()
@click.argument("paths", nargs=-1, required=True)
@click.pass_obj
def add(messages: Messages, paths: tuple[str, ...]) -> None:
    """Stage PATHS as git add does, but many or big files several times as fast."""
    from gds_lfs.porcelain.add import add as verb

    verb(_settled(messages), paths)


def _selection(command: Callable[..., None]) -> Callable[..., None]:
    """--include and --exclude."""
    described = "Patterns as in .gitignore; may be given several times."
    command = click.option("--exclude", multiple=True, metavar="PATTERN", help=f"Leave these out. {described}")(command)
    return click.option("--include", multiple=True, metavar="PATTERN", help=f"Only these. {described}")(command)


@cli.command()
@click.argument("remote", required=False)
@click.argument("revs", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="The data of all history, not of one commit.")
@_selection
@click.pass_obj
def fetch(
    messages: Messages,
    remote: str | None,
    revs: tuple[str, ...],
    *,
    everything: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
) -> None:
    """Bring data into the local store, without touching the work tree.

    REMOTE is a git remote, REVS are commits; by default HEAD's data from the branch's own remote.
    """
    from gds_lfs.porcelain import sync
    from gds_lfs.porcelain.pointers import Selection

    workspace = _settled(messages)
    sync.fetch(workspace, Selection(include, exclude, workspace.repo.prefix), remote, revs, everything=everything)


@cli.command()
@click.argument("remote", required=False)
@_selection
@click.pass_obj
def pull(messages: Messages, remote: str | None, *, include: tuple[str, ...], exclude: tuple[str, ...]) -> None:
    """Bring data and fill in the files of the work tree that are still pointers."""
    from gds_lfs.porcelain import sync
    from gds_lfs.porcelain.pointers import Selection

    workspace = _settled(messages)
    workspace.repo.work_tree  # noqa: B018 - says so where there is none
    sync.pull(workspace, Selection(include, exclude, workspace.repo.prefix), remote)


@cli.command()
@click.argument("remote", required=False)
@click.argument("revs", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="The data of all refs, not of one commit's history.")
@click.pass_obj
def push(messages: Messages, remote: str | None, revs: tuple[str, ...], *, everything: bool) -> None:
    """Send data that the remote lacks. git push does this by itself; this mends one made with --no-verify."""
    from gds_lfs.porcelain import sync

    sync.push(_settled(messages), remote, revs, everything=everything)


@cli.command()
@click.option("-v", "--verbose", is_flag=True, help="Name all files, not the first ten of each kind.")
@click.pass_obj
def status(messages: Messages, *, verbose: bool) -> None:
    """Show where data goes, and what needs mending. Exit code 1 when something does."""
    from gds_lfs.porcelain import inspect

    messages.verbose |= verbose
    if not inspect.status(_settled(messages)):
        sys.exit(1)


@cli.command("ls-files")
@click.argument("rev", required=False)
@click.option("-z", "raw", is_flag=True, help="Names alone, unquoted, each ended by a NUL.")
@click.option("-l", "--long", is_flag=True, help="Whole ids.")
@click.pass_obj
def ls_files(messages: Messages, rev: str | None, *, raw: bool, long: bool) -> None:
    """List the files whose content is ours, in the index or in REV: id, * if its data is local, name."""
    from gds_lfs.porcelain import inspect

    inspect.ls_files(_settled(messages), rev, raw=raw, long=long)


@cli.command()
@click.argument("rev", required=False)
@click.option("--repair", is_flag=True, help="Set corrupt data aside and take it anew from work tree or remote.")
@click.option("-v", "--verbose", is_flag=True, help="Name all files, not the first ten of each kind.")
@click.pass_obj
def fsck(messages: Messages, rev: str | None, *, repair: bool, verbose: bool) -> None:
    """Check pointers and local data, of the index or of REV. Exit code 1 when any is bad."""
    from gds_lfs.porcelain import inspect

    messages.verbose |= verbose
    if not inspect.fsck(_settled(messages), rev, repair=repair):
        sys.exit(1)


@cli.command()
@click.option("-n", "--dry-run", is_flag=True, help="Print what would happen, change nothing.")
@click.option("--again", is_flag=True, help="Run all ingests, also those whose code has not changed.")
@click.pass_obj
def reconcile(messages: Messages, *, dry_run: bool, again: bool) -> None:
    """Make data agree with the staged index.py, as a commit does, and stage it."""
    from gds_lfs.porcelain import events

    events.reconcile(_settled(messages), dry_run=dry_run, again=again)


@cli.command()
@click.argument("path", required=False)
@click.option("--rev", metavar="REV", help="Parse this commit instead of what is staged.")
@click.option("--samples", type=click.IntRange(min=1), default=1, help="So many samples of each split (1).")
@click.option("--full", is_flag=True, help="Take all rows of an ingest that has not run, not the first 100.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="List all files, functions, values and what was printed.")
@click.pass_obj
def parse(
    messages: Messages, path: str | None, *, rev: str | None, samples: int, full: bool, as_json: bool, verbose: bool
) -> None:
    """Check that a dataset loads for somebody else: files, environment, functions, rows, splits, first samples.

    PATH is an index.py, or a folder with one or with a Tensorleap leap.yaml. What is staged counts; it is run in a
    clean folder, and changes nothing. Exit code 5 when it does not load.
    """
    from gds_lfs.porcelain import parse_report, parsing

    result = parsing.parse(_settled(messages), path, rev, parsing.Options(samples, full))
    if as_json:
        from gds_lfs.dataset.parse.result import to_json

        messages.result_bytes(to_json(result) + b"\n")
    else:
        for line in parse_report.report(result, verbose=verbose or messages.verbose):
            messages.result(line)
    if not result.valid:
        sys.exit(DatasetError.exit_code)


@cli.group()
def venv() -> None:
    """The environments made from requirements.txt files (datasets.dynamicDependencies)."""


@venv.command("list")
@click.pass_obj
def venv_list(messages: Messages) -> None:
    """List them: id, Python, size, age, last use, requirements."""
    from gds_lfs.porcelain import venvs

    venvs.list_environments(messages)


@venv.command("prune")
@click.option("--all", "everything", is_flag=True, help="Also those in use; they are made again when they are needed.")
@click.pass_obj
def venv_prune(messages: Messages, *, everything: bool) -> None:
    """Remove those that nobody asked for in 30 days, and what killed builds left."""
    from gds_lfs.porcelain import venvs

    venvs.prune(messages, everything=everything)


@cli.group()
def migrate() -> None:
    """Turn the pointers of git-lfs into ours (import), or ours into those of git-lfs (export)."""


def _everything(command: Callable[..., None]) -> Callable[..., None]:
    """--everything."""
    described = "Rewrite all branches and tags, not just what is staged for the next commit."
    return click.option("--everything", is_flag=True, help=described)(command)


@migrate.command("import")
@click.option("--from", "source", type=click.Choice(["lfs"]), default="lfs", help="Whose pointers.")
@_everything
@click.pass_obj
def migrate_import(messages: Messages, *, source: str, everything: bool) -> None:  # noqa: ARG001 - one choice so far
    """Make git-lfs's pointers and attributes ours. Contents are taken from git-lfs's objects; none is sent again."""
    from gds_lfs.porcelain.migrate import IMPORT
    from gds_lfs.porcelain.migrate import migrate as verb

    verb(_settled(messages), IMPORT, everything=everything)


@migrate.command("export")
@click.option("--to", "target", type=click.Choice(["lfs"]), default="lfs", help="Whose pointers they become.")
@_everything
@click.pass_obj
def migrate_export(messages: Messages, *, target: str, everything: bool) -> None:  # noqa: ARG001 - one choice so far
    """Make our pointers and attributes git-lfs's. Contents are put where git-lfs looks for its objects."""
    from gds_lfs.porcelain.migrate import EXPORT
    from gds_lfs.porcelain.migrate import migrate as verb

    verb(_settled(messages), EXPORT, everything=everything)


@cli.command()
@click.pass_obj
def env(messages: Messages) -> None:
    """Print versions, paths and settings, for a bug report."""
    from gds_lfs.porcelain import inspect

    try:
        workspace = open_workspace(messages)
    except NotARepositoryError:
        workspace = None
    inspect.env(messages, workspace)


@cli.command()
@click.pass_obj
def version(messages: Messages) -> None:
    """Print the version."""
    messages.result(f"git-datasets {__version__}")


@cli.command()
@click.argument("folder", default="git-datasets-demo", type=click.Path(path_type=Path))
@click.pass_obj
def demo(messages: Messages, folder: Path) -> None:
    """Make a small dataset in FOLDER, commit, push, clone and check it, printing each step.

    Your git config stays untouched.
    """
    from gds_lfs.porcelain.demo import demo as run

    run(messages, folder)


cli.add_command(filter_process)
cli.add_command(clean)
cli.add_command(smudge)
cli.add_command(merge_driver)
cli.add_command(hook)


def _interrupted(*_: object) -> NoReturn:
    """Say so at once: what is under way may take seconds to end, and git gives the prompt back before."""
    context = click.get_current_context(silent=True)
    if context is not None and isinstance(context.obj, Messages):
        context.obj.progress.done()
    Messages().error("interrupted")
    raise KeyboardInterrupt


def main() -> None:
    """The entry point: run a command, and turn what a user can cause into a line and an exit code."""
    messages = Messages()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it may be ignored, as behind nohup
        signal.signal(signal.SIGINT, _interrupted)
    gc.disable()  # a command ends before it has made garbage worth looking for
    try:
        code = cli.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)
    except GitDatasetsError as error:
        messages.error(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        messages.error(f"{os.fsdecode(error.filename or 'the system')}: {error.strerror or error}")
        sys.exit(1)
    finally:
        gc.freeze()  # nor is there any in what it had, which Python would look through at its end
