"""Parses that nobody asked for: before a commit that changes a dataset's code, and before its push.

Code is run that the user commits or pushes, of datasets that their own checkout tracks, and that no remote has yet:
what came by clone, fetch or pull and is only handed on is not run. `datasets.parseOnCommit=false` switches both off.

A pass is remembered by what decides it, as an empty file `<git dir>/datasets/parsed/<key>`: the code that the
dataset's file imports, its requirements, and our version. So a push does not repeat what the commit has done.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from gds_lfs import __version__
from gds_lfs.dataset import fingerprint
from gds_lfs.dataset.sandbox import CodeError
from gds_lfs.errors import DatasetError, MissingObjectError, RemoteError
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import child
from gds_lfs.porcelain.surroundings import REQUIREMENTS
from gds_lfs.porcelain.tracking import registrations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from gds_lfs.dataset.parse.result import Result
    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.checking import Check
    from gds_lfs.porcelain.drafting import Drafted, Drafting
    from gds_lfs.porcelain.tracking import Registration
    from gds_lfs.porcelain.workspace import Workspace

SETTING = "datasets.parseOnCommit"
_MOST_REMEMBERED = 500
_MORE_TO_SAY = (
    "file_not_found",
    "file_not_in_commit",
    "file_not_fetched",
    "file_outside",
    "permission",
    "outside_volumes",
    "out_of_memory",
    "killed",
    "crashed",
    "hang",
)
"""Failures of ingests and derived fields whose advice goes beyond what a commit says anyway."""


class CommitParse:
    """The parse of the datasets in one commit, whose index is `index` and which changes the paths `changed`."""

    def __init__(self, workspace: Workspace, index: Path | None, changed: set[bytes]) -> None:
        self._workspace = workspace
        self._index = index
        self._changes_code = any(_is_code(path) for path in changed) and _is_on(workspace)
        self._keys: dict[bytes, str] = {}

    def check(self, registration: Registration, sources: dict[str, str], scratch: Path) -> Check | None:
        """The parse of a dataset, its files laid out and its interpreter chosen; None when it needs none.

        Raises DatasetError when that fails already.
        """
        if not self._changes_code:
            return None
        repo = self._workspace.repo
        entries = list(repo.staged(index=self._index))
        key = self._keys[registration.index] = code_key(registration.index, sources, entries)
        if _is_remembered(self._workspace, key) or key == self._key_of_head(registration.index):
            return None
        from gds_lfs.porcelain.checking import Check, Scope

        check = Check(self._workspace, registration.index, Scope(self._index, entries), scratch)
        check.show = lambda data: child.show(self._workspace, data)
        if not check.first_stages():
            raise _refusal(check.engine.finish(), "commit", _staging(self._workspace, registration.index))
        return check

    def draft(self, check: Check, drafting: Callable[[], Drafted], files: Drafting) -> Drafted:
        """Make the rows, and go on from them in the same child. Raises DatasetError for what does not load."""
        from gds_lfs.porcelain.checking import FUNCTIONS, PREPROCESS, SAMPLES

        try:
            check.declare()
            drafted = check.with_patience(drafting)
        except CodeError as error:
            found = check.engine.finding_of(error)
            if found.kind == "module_not_found":  # whether it is here but not staged is not known to who only runs it
                raise DatasetError(f"{found.where}: {found.text}\n→ {found.advice}") from None
            if found.kind in _MORE_TO_SAY:
                more = found.text.splitlines()[1:]
                raise DatasetError("\n".join([str(error), *more, f"→ {found.advice}"])) from None
            raise
        check.show = None
        stage = check.engine.stage
        stage(FUNCTIONS, check.engine.functions)
        check.take(drafted, files)
        stage(PREPROCESS, check.preprocess, (FUNCTIONS,))
        stage(SAMPLES, check.samples, (PREPROCESS,))
        result = check.engine.finish()
        if not result.valid:
            raise _refusal(result, "commit", _staging(self._workspace, files.registration.index))
        index = files.registration.index
        remember(self._workspace, self._keys[index])
        _tell(self._workspace, index, result)
        return drafted

    def _key_of_head(self, index: bytes) -> str | None:
        repo = self._workspace.repo
        if repo.head() is None:
            return None
        entries = list(repo.tree("HEAD"))
        return code_key(index, child.sources_of(self._workspace, entries), entries)


def before_push(workspace: Workspace, git_remote: str, tips: Sequence[str], known: Sequence[str]) -> None:
    """Parse the datasets of the tips to be pushed, where no remote has their code and no commit has done it.

    `known` are commits that the remote has. Raises DatasetError, which stops the push.
    """
    if workspace.repo.top is None or not _is_on(workspace):
        return
    own = {each.index for each in [*registrations(workspace), *registrations(workspace, ":")]}
    if not own:
        return
    passed = set()
    for tip in dict.fromkeys(tips):
        if not _brings_code(workspace, tip, known):
            continue
        entries = list(workspace.repo.tree(tip))
        sources = child.sources_of(workspace, entries)
        for registration in registrations(workspace, tip):
            key = code_key(registration.index, sources, entries)
            mine = registration.index in own and os.fsdecode(registration.index) in sources
            if mine and key not in passed and not _is_remembered(workspace, key):
                _parse_tip(workspace, registration, tip, git_remote)
                passed.add(key)
                remember(workspace, key)


def code_key(index: bytes, sources: dict[str, str], entries: Iterable[Entry]) -> str:
    """What decides whether a dataset loads, as far as it is code: the same key, the same outcome."""
    entry = os.fsdecode(index)
    agreement = fingerprint.agreement(sources, entry) if entry in sources else ""
    beside = {index[: index.rfind(b"/") + 1] + REQUIREMENTS.encode(), REQUIREMENTS.encode()}
    requirements = sorted((each.path, each.sha) for each in entries if each.path in beside)
    return hashlib.sha256(repr((__version__, index, agreement, requirements)).encode()).hexdigest()


def remember(workspace: Workspace, key: str) -> None:
    """Note that what this key stands for loads. A note that cannot be written costs time, and no more."""
    folder = workspace.scratch.parent / "parsed"
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        (folder / key).touch()
        notes = sorted(folder.iterdir(), key=lambda note: note.stat().st_mtime)
        for note in notes[:-_MOST_REMEMBERED]:
            note.unlink()


def _is_remembered(workspace: Workspace, key: str) -> bool:
    return (workspace.scratch.parent / "parsed" / key).exists()


def _is_on(workspace: Workspace) -> bool:
    return workspace.settings.get_bool(SETTING, default=True)


def _is_code(path: bytes) -> bool:
    return path.endswith(b".py") or path.rpartition(b"/")[2] == REQUIREMENTS.encode()


def _brings_code(workspace: Workspace, tip: str, known: Sequence[str]) -> bool:
    """Whether a commit that no remote has, as far as is known here, changes code."""
    there = [
        each for each in known if workspace.repo.run("rev-parse", "-q", "--verify", f"{each}^{{commit}}", check=False)
    ]
    paths = ["--", "*.py", REQUIREMENTS, f"*/{REQUIREMENTS}"]
    if not workspace.repo.run("rev-parse", "-q", "--verify", f"{tip}^{{commit}}", check=False):
        return False  # a tag of something else
    return bool(workspace.repo.run("rev-list", "-1", tip, "--not", "--remotes", *there, *paths, check=False))


def _parse_tip(workspace: Workspace, registration: Registration, tip: str, git_remote: str) -> None:
    from gds_lfs.porcelain import parsing

    with child.scratch_folder(workspace) as scratch:
        scope = parsing.scope_of(workspace, tip, scratch)
        try:
            result = parsing.parse_dataset(workspace, registration, scope, scratch, parsing.Options())
        except (MissingObjectError, RemoteError) as error:
            workspace.messages.warn(f"{quote(registration.index)} was not parsed before this push: {error}")
            return
    if not result.valid:
        raise _refusal(result, f"push {git_remote}")
    _tell(workspace, registration.index, result)


def _staging(workspace: Workspace, index: bytes) -> str:
    """What brings into the index what a commit of single files (`git commit FILE`) has in an index of its own, which is
    gone when it is refused.
    """
    alone = workspace.repo.index_path.name.startswith("next-index")
    return f"git add {quote(index)}; " if alone else ""


def _refusal(result: Result, what: str, staging: str = "") -> DatasetError:
    from gds_lfs.dataset.parse.result import FAILED
    from gds_lfs.porcelain.parse_report import finding_lines, output_lines

    lines = [f"{result.entry} does not load for somebody else, so nothing was changed:"]
    alike = Counter((finding.where, finding.text) for finding in result.failures)
    for finding in result.failures:
        if number := alike.pop((finding.where, finding.text), 0):
            lines += finding_lines(finding)
            lines += [f"    (and {number - 1} like it)"] if number > 1 else []
    for stage in result.stages:
        if stage.status == FAILED and stage.output.strip():
            lines += [f"  {stage.name} printed:", *output_lines(stage)]
    verb = what.partition(" ")[0]
    lines.append(f"To see it whole: {staging}git datasets parse. To {verb} all the same: git -c {SETTING}=false {what}")
    return DatasetError("\n".join(lines))


def _tell(workspace: Workspace, index: bytes, result: Result) -> None:
    from gds_lfs.dataset.parse.engine import counted

    warnings = [warning for warning in result.warnings if warning.kind != "no_rows"]
    more = f", {counted(len(warnings), 'warning')} (git datasets parse has them)" if warnings else ""
    values = counted(len(result.samples), "value")
    splits = counted(len(result.splits), "split")
    workspace.messages.note(f"{quote(index)}: loads ({values} of {splits} looked at, {result.seconds:.1f} s{more})")
