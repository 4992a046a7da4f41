"""A Tensorleap integration under parse: a folder with a `leap.yaml`, which says what goes and what is executed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gds_lfs.dataset.parse import leap_yaml
from gds_lfs.porcelain import child
from gds_lfs.porcelain.checking import (
    FILES,
    FUNCTIONS,
    PREPROCESS,
    SAMPLES,
    Check,
    data_paths,
    refuse_wrong_python,
)
from gds_lfs.porcelain.layout import lay_out
from gds_lfs.porcelain.surroundings import REQUIREMENTS
from gds_lfs.porcelain.venvs import environments

if TYPE_CHECKING:
    from pathlib import Path

    from gds_lfs.dataset.parse.result import Result
    from gds_lfs.porcelain.checking import Scope
    from gds_lfs.porcelain.workspace import Workspace


class LeapCheck(Check):
    """The parse of the integration whose `leap.yaml` is `entry`."""

    program = "leap"
    _settings = leap_yaml.LeapYaml("", [], [], None)

    @property
    def code(self) -> Path:
        return self.clean / os.fsdecode(self.base)

    @property
    def program_entry(self) -> str:
        return self._settings.entry

    def files(self) -> str:
        """Work of a stage. Raises LeapYamlError."""
        folder = [entry for entry in self.scope.entries if entry.stage == 0 and entry.path.startswith(self.base)]
        entry = next(each for each in folder if each.path == self.entry)
        ((_, text),) = self.workspace.repo.blobs([entry.sha])
        self._settings = leap_yaml.read(text.decode("utf-8", "replace"))
        names = {os.fsdecode(each.path[len(self.base) :]): each for each in folder}
        chosen = self._settings.select(names)
        going = [names[name] for name in chosen.files]
        self.layout = lay_out(self.workspace, going, self.scope.index, self.clean, data_paths(self.workspace))
        self.layout.left_out = frozenset(each.path for each in folder) - {each.path for each in going}
        for unmatched in chosen.unmatched:
            self._warn(FILES, "pattern", unmatched, "mend the pattern in leap.yaml, or drop it")
        self._know_files()
        return self._files_summary() + f", {self._settings.entry} is executed"

    def environment(self) -> str:
        """Work of a stage: an interpreter of the version that leap.yaml names. Raises EnvironmentFailure."""
        python = child.interpreter(self.workspace)
        if self.workspace.settings.get_bool(child.DYNAMIC):
            python = environments().prepare(
                self.code / REQUIREMENTS,
                python,
                self.hear_installer,
                wanted=self._settings.python,
                needed=leap_yaml.NEEDED,
            )
        else:
            refuse_wrong_python(python, self._settings.python)
        self.python = self.around.python = self.result.python = python
        return python


def parse_leap(workspace: Workspace, entry: bytes, scope: Scope, scratch: Path, samples: int) -> Result:
    """Parse the integration of a `leap.yaml`. What the code does wrong is in the result."""
    check = LeapCheck(workspace, entry, scope, scratch)
    stage = check.engine.stage
    if not check.first_stages():
        for name, needs in ((FUNCTIONS, "environment"), (PREPROCESS, FUNCTIONS), (SAMPLES, PREPROCESS)):
            stage(name, str, (needs,))
        return check.engine.finish()
    with check.sandbox({}):

        def values() -> str:
            summary = check.engine.samples(samples)
            check.engine.notes()
            return summary

        stage(FUNCTIONS, check.engine.functions)
        stage(PREPROCESS, check.engine.splits, (FUNCTIONS,))
        stage(SAMPLES, values, (PREPROCESS,))
    return check.engine.finish()
