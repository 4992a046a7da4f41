"""One dataset made to agree with its staged `index.py`: from the index of a commit to what that index is to become.

User code runs in a child, on copies in a scratch folder (`drafting.py`). What comes out is a `Target`, which
`applying.py` carries out or leaves undone as a whole. What of the index belongs to the dataset is told by the index's
own database: its rows name their files, so a row that is gone takes its files along, and a file that nobody names is
nobody's.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import EMPTY
from gds_lfs.content.pointer import Pointer
from gds_lfs.errors import DatasetError, GitDatasetsError, LockedError
from gds_lfs.git import attributes
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import child, setup_texts
from gds_lfs.porcelain.applying import carry_out
from gds_lfs.porcelain.drafting import Drafting, is_pointer
from gds_lfs.porcelain.pointers import in_entries
from gds_lfs.porcelain.setup_texts import Setup
from gds_lfs.porcelain.target import Placement, Target, text
from gds_lfs.porcelain.tracking import TEMPLATE_FILES, registrations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gds_lfs.git.repo import Entry
    from gds_lfs.porcelain.drafting import Drafted
    from gds_lfs.porcelain.journal import Journal
    from gds_lfs.porcelain.parse_events import CommitParse
    from gds_lfs.porcelain.tracking import Registration
    from gds_lfs.porcelain.workspace import Workspace


def reconcile(
    workspace: Workspace,
    registrations: Iterable[Registration],
    index: Path | None,
    changed: set[bytes],
    previous: Journal | None = None,
    *,
    force: bool = False,
    again: bool = False,
    parse: CommitParse | None = None,
) -> list[Registration]:
    """Bring index and work tree up to date with all these datasets together; those that changed.

    `changed`, `force`, `again` and `parse` are as in `Reconciliation.prepare`, `previous` is the journal of an earlier
    try.
    Raises DatasetError, MissingObjectError, LockedError, StoreWriteError; then nothing has changed.
    """
    with ExitStack() as stack:
        targets = []
        for registration in registrations:
            scratch = stack.enter_context(child.scratch_folder(workspace))
            one = Reconciliation(workspace, registration, index, scratch)
            target = one.prepare(changed, force=force, again=again, parse=parse)
            if target is not None:
                targets.append(target)
        setups = [target.setup for target in targets]
        earlier = previous.earlier if previous is not None else ()
        texts = setup_texts.edits(workspace, setups, index, earlier) if targets else []
        done = carry_out(workspace, targets, texts, index, previous)
    for target in targets:
        _report(workspace, target, changed=target in done or target.registration.database in changed)
    return [target.registration for target in done]


class Reconciliation(Drafting):
    """A dataset that is to agree with its `index.py` in an index."""

    def prepare(
        self, changed: set[bytes], *, force: bool = False, again: bool = False, parse: CommitParse | None = None
    ) -> Target | None:
        """Run the user's code and work out what the dataset is to become; None when there is nothing to do.

        With `again` all ingests run, also those whose code has not changed. `parse` looks at what comes out, and at
        whatever else somebody else would run.

        Nothing more is looked at once the database says that it agrees with the staged code, unless `force`, or
        one of the `changed` paths is the dataset's.
        Raises DatasetError, MissingObjectError, LockedError; nothing changes outside the scratch folder.
        """
        if not self._index_py_is_staged():
            if self.registration.index in changed:
                self._tell_what_stays()
            return None
        on_disk = Path(os.fsdecode(self.repo.absolute(self.registration.database)))
        if not force and is_pointer(on_disk) and not self._may_touch(changed):
            return None  # a clone without data: it is not fetched for a commit that has nothing to do with it
        sources = child.staged_sources(self.workspace, self.index)
        entry = child.require_source(sources, self.registration.index)
        check = parse.check(self.registration, sources, self.scratch) if parse is not None else None
        needed = force or check is not None
        try:
            database = self.current_database()
            if not needed and not self._touches(database, changed) and self._agrees(database, sources, entry):
                return None
        except LockedError:
            if force or self._may_touch(changed):
                raise
            return None  # another program has the database, and this commit has nothing to do with it
        if check is None or parse is None:
            with self._sandbox(sources, entry) as sandbox:
                drafted = self.draft(sandbox, sources, entry, database, again=again)
        else:
            with check.sandbox(sources) as sandbox:
                drafting = partial(self.draft, sandbox, sources, entry, database, again=again)
                drafted = parse.draft(check, drafting, self)
        target = self._target(drafted)
        target.seen = drafted.seen
        return target

    def _tell_what_stays(self) -> None:
        """The dataset's file is being removed: its data is the user's to remove."""
        database = self.registration.database
        folders = self._folders(self._index_database(database))
        left = [path for path in (database, *folders) if any(True for _ in self.repo.staged([path], self.index))]
        if left:
            self.workspace.messages.note(
                f"{quote(self.registration.index)} goes, its data stays; to remove that too: "
                f"git rm -r {' '.join(map(quote, left))}"
            )

    def _touches(self, database: Path | None, changed: set[bytes]) -> bool:
        """Whether any of the paths is the dataset's file, its database, or in one of its folders."""
        registration = self.registration
        if registration.index in changed or registration.database in changed:
            return True
        folders = tuple(folder + b"/" for folder in self._folders(database))
        return any(path.startswith(folders) for path in changed)

    def _may_touch(self, changed: set[bytes]) -> bool:
        """Whether any of the paths may be the dataset's, as far as can be told without its database."""
        if any(path == self.registration.database or path.endswith(b".py") for path in changed):
            return True
        within = [path for path in changed if path.startswith(self.registration.folder)]
        return any(attributes.check(self.repo, within).values())

    def _agrees(self, database: Path | None, sources: dict[str, str], entry: str) -> bool:
        from gds_lfs.dataset import fingerprint
        from gds_lfs.dataset.database import read_agreement

        return read_agreement(database) == fingerprint.agreement(sources, entry)

    def _index_py_is_staged(self) -> bool:
        return any(True for _ in self.repo.staged([self.registration.index], self.index))

    def _target(self, drafted: Drafted) -> Target:
        """What the index is to hold for this dataset. Raises DatasetError where the user staged other content."""
        declaration, former, result, new = drafted.declaration, drafted.former, drafted.result, drafted.new
        registration = self.registration
        folder = registration.folder
        sources = {folder + os.fsencode(placed.path): placed.source for placed in result.place} if result else {}
        wanted = self._files(new)
        owned = self._owned(former)
        current = {registration.field_folder(name) for name in declaration.file_fields()}
        gone = {path[: path.index(b"/", len(folder))] for path in owned} - current
        fresh = drafted.database is None
        template = {registration.field_folder(name) for name in TEMPLATE_FILES} - current if fresh else set()
        entries = {e.path: e for e in self.repo.staged(sorted({*current, *gone, *template, former}), self.index)}
        gone |= {each for each in template if not any(path.startswith(each + b"/") for path in entries)}
        patterns = [registration.folder_pattern(each) for each in sorted(gone)]
        target = Target(registration, Setup(registration, declaration, tuple(patterns)), new, result)
        for path, pointer in wanted.items():
            if self._is_as_wanted(path, pointer, entries.get(path), owned.get(path)):
                continue
            target.place[path] = Placement(
                pointer, sources.get(path), partial(self.contents.pieces, quote(path), pointer.oid)
            )
            if path not in entries and pointer.size and owned.get(path) == pointer:
                target.restored.append(path)
        target.removed_rows = self._removed_rows(former, new)
        target.remove = {path for path in owned if path in entries and path not in wanted}
        within = tuple(name + b"/" for name in current)
        target.strays = [p for p in entries if p.startswith(within) and p not in wanted and p not in owned]
        if former != registration.database:
            target.former = former
            target.setup = target.setup._replace(former=(*patterns, registration.pattern(former)))
            target.remove |= {former} & entries.keys()
        return target

    def _owned(self, path: bytes) -> dict[bytes, Pointer]:
        """The files that are the dataset's so far: those that the databases of the index, of HEAD and of a commit
        being merged record. In the index's one a user may have deleted their rows.
        """
        entries = [next((e for e in self.repo.staged([path], self.index) if e.stage == 0), None)]
        entries += [next(self.repo.tree(rev, [path]), None) for rev in ("MERGE_HEAD", "HEAD") if self._is_commit(rev)]
        found: dict[bytes, Pointer] = {}
        for file in in_entries(self.repo, {e.sha: e for e in reversed(entries) if e is not None}.values()):
            found |= self._files(self.contents.database(quote(path), file.pointer.oid), orphans=True)
        return found

    def _removed_rows(self, former: bytes, new: Path) -> int:
        """How many rows of the last commit are no more: those that were deleted with SQL."""
        from gds_lfs.dataset.database import count_gone

        with suppress(GitDatasetsError):  # a number in a message is no reason to refuse a commit
            committed = self._committed_database(former)
            return count_gone(committed, new) if committed is not None else 0
        return 0

    def _files(self, database: Path, *, orphans: bool = False) -> dict[bytes, Pointer]:
        """The files of a database's rows, and an empty `.gitkeep` for each folder that has none (with `orphans`, for
        each): git keeps no folder without a file.
        """
        from gds_lfs.dataset.database import files

        registration = self.registration
        named = files(database, orphans=orphans)
        found = {registration.folder + os.fsencode(f.path): Pointer(f.oid, f.size) for f in named}
        folders = {path[: path.index(b"/", len(registration.folder))] for path in found if not orphans}
        keeps = (folder + b"/.gitkeep" for folder in set(self._folders(database)) - folders)
        return found | dict.fromkeys(keeps, Pointer(EMPTY, 0))

    def _folders(self, database: Path | None) -> list[bytes]:
        """The folders of a database's File fields."""
        from gds_lfs.dataset.database import read_file_fields

        return [self.registration.field_folder(name) for name in read_file_fields(database)]

    def _is_as_wanted(self, path: bytes, pointer: Pointer, entry: Entry | None, owned: Pointer | None) -> bool:
        """Whether the index has a row's file. Raises DatasetError where it has other content, put there by hand."""
        if entry is not None and entry.sha == self.repo.blob_id(text(pointer)):
            return True
        if entry is not None and owned == pointer:
            raise DatasetError(
                f"{quote(path)} was changed by hand, but rows come from {quote(self.registration.index)} alone.\n"
                f"Take it back with `git checkout HEAD -- {quote(path)}`, and change the code that makes it instead"
            )
        return False


def _report(workspace: Workspace, target: Target, *, changed: bool) -> None:
    name = quote(target.registration.index)
    if target.strays:
        workspace.messages.warn_paths(
            f"no row of {name} names these files, so they are left out of the commit:",
            map(quote, target.strays),
            "To add rows, return them from an ingest.",
        )
    if target.restored:
        workspace.messages.warn_paths(
            f"rows of {quote(target.registration.database)} name these files, so they stay in the commit:",
            map(quote, target.restored),
            "To remove a row, delete it with SQL.",
        )
    for notice in target.result.notices if target.result is not None else ():
        workspace.messages.warn(notice)
    summary = target.summary() if changed else ""
    if summary:
        workspace.messages.note(f"{name}: {summary}")


def disagreeing(workspace: Workspace) -> list[Registration]:
    """The datasets whose database in the work tree was made by other code than the `index.py` in the index."""
    from gds_lfs.dataset import fingerprint
    from gds_lfs.dataset.database import read_agreement

    found = []
    sources: dict[str, str] | None = None
    for registration in registrations(workspace):
        database = Path(os.fsdecode(workspace.repo.absolute(registration.database)))
        if sources is None:
            sources = child.staged_sources(workspace)
        entry = os.fsdecode(registration.index)
        if entry not in sources or is_pointer(database):
            continue
        if read_agreement(database) != fingerprint.agreement(sources, entry):
            found.append(registration)
    return found
