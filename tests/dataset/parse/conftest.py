from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from gds_lfs.dataset import database, fingerprint, reconcile
from gds_lfs.dataset.parse.advice import Advisor, Limits, Told
from gds_lfs.dataset.parse.engine import Engine
from gds_lfs.dataset.parse.result import KINDS, Finding, Result
from gds_lfs.dataset.sandbox import Confines, Sandbox

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
import os, sys
from pathlib import Path
from gds_lfs import File, dataset, ground_truth, ingest, input, metadata, preprocess, txt

HERE = Path(__file__).parent

@dataset
class D:
    x: int
    @ingest
    def load():
        return list(range(10))
"""
"""The code under test begins at line 13."""


class Around:
    """Surroundings that know nothing."""

    def of_path(self, path: str) -> Told:
        return Told("file_not_found", f"asked for {path}", "look")

    def of_module(self, name: str, similar: list[str]) -> Told:
        return Told("module_not_found", f"{name}, {similar}", "install it")

    def memory(self) -> int:
        return 1 << 60


class Parsing:
    """Datasets parsed in a folder, as the porcelain does it, but without git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.clean = root / "clean"
        self.count = root / "count"
        for folder in (self.work, self.clean, root / "spool"):
            folder.mkdir()

    def run(
        self,
        text: str,
        *,
        head: str = HEAD,
        files: dict[str, str] | None = None,
        samples: int = 1,
        limit: int | None = 100,
        volumes: tuple[str, ...] | None = None,
        memory: int | None = None,
        seconds: float | None = 60,
        python: str = sys.executable,
    ) -> Result:
        """The result of parsing `head` and `text`, with other files beside it."""
        sources = {"index.py": head + text.replace("COUNT", repr(str(self.count))), **(files or {})}
        for name, content in sources.items():
            (self.clean / name).write_text(content)
        result = Result("index.py")
        engine = Engine(result, Advisor(Around(), str(self.clean), str(self.work), Limits(memory, seconds)))
        confines = Confines(self.clean, volumes, memory)
        spool = self.root / "spool"
        with Sandbox(
            python,
            self.work,
            "index.py",
            sources,
            spool,
            output=engine.hear,
            timeout=seconds,
            confines=confines,
        ) as sandbox:
            engine.sandbox = sandbox
            made = self.root / "dataset.sqlite.new"

            def functions() -> str:
                sandbox.declare()
                return engine.functions()

            def rows() -> str:
                agreement = fingerprint.agreement(sources, "index.py")
                plan = reconcile.plan(sandbox.declare(), database.State(), agreement)
                reconcile.apply(plan, None, self.root, sandbox, lambda path, _oid: self.root / path, limit=limit)
                return ""

            engine.stage("functions", functions)
            engine.stage("rows", rows, ("functions",))
            engine.stage("preprocess", lambda: engine.splits(made), ("rows",))
            engine.stage("samples", lambda: engine.samples(samples), ("preprocess",))
            engine.notes()
        assert {each.kind for each in result.failures + result.warnings} <= KINDS.keys()
        return engine.finish()

    def failure(self, text: str, **options: Any) -> Finding:
        """The one thing that is wrong with a dataset."""
        result = self.run(text, **options)
        (found,) = result.failures
        assert not result.valid
        assert found.advice
        return found

    def counted(self) -> int:
        """How often code has called `open(COUNT, "a").write("x")`."""
        return len(self.count.read_text()) if self.count.exists() else 0


@pytest.fixture
def parsing(tmp_path: Path) -> Parsing:
    return Parsing(tmp_path)
