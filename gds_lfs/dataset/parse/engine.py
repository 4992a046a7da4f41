"""The stages of a parse, in order: each with its status, its time, its memory and what was printed meanwhile.

A stage that fails leaves findings; the stages that need it are skipped by name. What the child is asked is noted before
it is asked, so that whatever becomes of it, what it was doing is known.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from gds_lfs.dataset.child import NotStartedError
from gds_lfs.dataset.install_failure import EnvironmentFailure
from gds_lfs.dataset.parse import advice, checks
from gds_lfs.dataset.parse.leap_yaml import LeapYamlError
from gds_lfs.dataset.parse.program import FIELDS, HANDLERS, PREPROCESS
from gds_lfs.dataset.parse.result import (
    FAILED,
    OK,
    SKIPPED,
    Finding,
    Function,
    Result,
    Sample,
    Split,
    Stage,
    Value,
)
from gds_lfs.dataset.sandbox import CodeError
from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gds_lfs.dataset.parse.advice import Task
    from gds_lfs.dataset.sandbox import Sandbox

_LONGEST_OUTPUT = 16_384
_MOST_DEATHS = 3
"""A handler that ends Python does not hide the others; so many do."""


class _GivenUpError(Exception):
    """There is no child to go on with."""


class Engine:
    """One parse.

    The sandbox is set when its interpreter is known; `hear` is the sandbox's `output`.
    """

    def __init__(self, result: Result, advisor: advice.Advisor) -> None:
        self.result = result
        self.sandbox: Sandbox | None = None
        self._advisor = advisor
        self._locate: Callable[[str], Path | None] = lambda _path: None
        self._database: Path | None = None
        self._deaths = 0
        self._peak = 0
        self._output = bytearray()
        self._printed = 0
        self._task = advice.Task("", "")
        self._began = time.monotonic()

    def hear(self, data: bytes) -> None:
        """Take what was printed."""
        self._printed += len(data)
        self._output += data
        del self._output[:-_LONGEST_OUTPUT]

    def stage(self, name: str, work: Callable[[], str], needs: tuple[str, ...] = ()) -> bool:
        """Do a stage's work, which gives a summary, unless a stage that it needs failed; whether it is without a fault.

        What user code did wrong becomes a finding. Raises what is not the code's fault (LockedError and the like).
        """
        stage = Stage(name)
        self.result.stages.append(stage)
        stage.because = next((self._cause(each) for each in needs if self._status(each) != OK), None)
        if stage.because is not None:
            return False
        failures = len(self.result.failures)
        began = time.monotonic()
        self._task = advice.Task(name, "")
        self._measure()
        self._output.clear()
        self._printed = 0
        try:
            stage.summary = work()
        except CodeError as error:
            self.result.failures.append(self.finding_of(error))
        except EnvironmentFailure as error:
            self.result.failures.append(Finding(error.kind, name, error.headline, error.advice, detail=error.detail))
        except LeapYamlError as error:
            self.result.failures.append(Finding("declaration", name, error.headline, error.advice, where=error.where))
        except NotStartedError as error:
            self.result.failures.append(Finding("wrong_python", name, error.headline, error.advice))
        except DatasetError as error:
            text, _, more = str(error).partition("\n")
            self.result.failures.append(Finding("declaration", name, text, more or "mend the declaration"))
        finally:
            peak = self._measure()
            stage.seconds = round(time.monotonic() - began, 4)
            stage.peak_memory = peak or None
            stage.output = self._output.decode("utf-8", "replace")
            stage.output_size = self._printed
            stage.status = FAILED if len(self.result.failures) > failures else OK
        return stage.status == OK

    def finish(self) -> Result:
        """The result, complete."""
        self.result.seconds = round(time.monotonic() - self._began, 4)
        self.result.valid = not self.result.failures
        return self.result

    def functions(self) -> str:
        """Work of a stage: what is registered."""
        answer = self._ask({"do": "functions"}, self._task)
        if "error" in answer:
            self._tell(answer["error"])
            return ""
        self.result.functions = [Function(*each) for each in answer["functions"]]
        counts: dict[str, int] = {}
        for function in self.result.functions:
            counts[function.kind] = counts.get(function.kind, 0) + 1
        return ", ".join(counted(number, kind.replace("_", " ")) for kind, number in counts.items())

    def splits(self, database: Path | None = None, locate: Callable[[str], Path | None] = lambda _path: None) -> str:
        """Work of a stage: preprocess, once. The rows are those of `database`, their files where `locate` says."""
        self._locate = locate
        self._database = database
        preprocess = next((each for each in self.result.functions if each.kind == PREPROCESS), None)
        if preprocess is not None:
            self._task = advice.Task(self._task.stage, PREPROCESS, preprocess.name, preprocess.where)
        answer = self._ask(self._splits_request(), self._task)
        if "error" in answer:
            self._tell(answer["error"])
            return ""
        for split in answer["splits"]:
            self.result.splits.append(Split(split["name"], split["length"], split["without"]))
            self._look_at_split(split)
        if answer["shared"]:
            one, other, sample = answer["shared"]
            self._warn("shared_id", f"{one} and {other} share the sample {sample}", "keep what is trained on apart")
        return ", ".join(f"{split.name} {split.length:,}" for split in self.result.splits)

    def samples(self, number: int = 1) -> str:
        """Work of a stage: `number` samples of each split, spread over it, by every handler."""
        handlers = [each for each in self.result.functions if each.kind in HANDLERS]
        handlers = handlers or [each for each in self.result.functions if each.kind in FIELDS]
        changes = checks.Changes()
        looked = 0
        try:
            for split in self.result.splits:
                positions = spread(split.length, number)
                looked += len(positions)
                for handler in (each for each in handlers if each.kind not in split.without):
                    for position in positions:
                        if not self._look_at_sample(handler, split, position, changes):
                            break
        except _GivenUpError:
            self.result.notes.append("Python ended too often: what was not called yet is left out")
        return f"{counted(looked, 'sample')} of {counted(len(self.result.splits), 'split')}"

    def notes(self) -> None:
        """Have the program look at itself as a whole; take its own notes, and what it read that others do not have."""
        if self.sandbox is None or not self.sandbox.alive:
            return
        self._task = advice.Task(self._task.stage, "")
        found = self._ask({"do": "verify"}, self._task)
        if "error" in found:
            self._tell(found["error"])
        answer = self._ask({"do": "notes"}, self._task)
        self.result.notes += answer.get("notes", [])
        for path, inside in answer.get("outside", {}).items():
            if inside:
                text = f"it reads {path}, by a path that only this machine has"
                self._warn("file_outside", text, f"name it from the code: Path(__file__).parent / {inside!r}")
            else:
                text = f"it reads {path}, which is outside the repository, so absent elsewhere"
                self._warn("file_outside", text, "add it to the repository, or make sure that every machine has it")

    def _look_at_split(self, split: dict[str, Any]) -> None:
        task = self._task._replace(split=split["name"])
        if not split["length"]:
            self.result.warnings.append(task.finding("empty_split", f"{split['name']} is empty", "is that meant?"))
        if split["repeated"]:
            text = f"{split['name']} has the sample {split['repeated']} twice"
            self.result.failures.append(task.finding("repeated_id", text, "give each sample once"))
        if split["unhashable"]:
            text = f"{split['name']} has a sample whose id cannot be told from others: {split['unhashable']}"
            self.result.failures.append(task.finding("unhashable_id", text, "give ids that are text or numbers"))

    def _look_at_sample(self, handler: Function, split: Split, position: int, changes: checks.Changes) -> bool:
        """Whether it is worth looking at another sample with this handler."""
        place = f"#{position}"
        self._task = advice.Task(self._task.stage, handler.kind, handler.name, handler.where, split.name, place)
        began = time.monotonic()
        request = {"do": "value", "kind": handler.kind, "name": handler.name, "split": split.name, "position": position}
        try:
            answer = self._ask(request, self._task)
        except CodeError as error:
            self.result.failures.append(self.finding_of(error))
            if self.result.failures[-1].kind == "hang":  # another would take as long
                raise _GivenUpError from error
            self._begin_again()
            return False
        if answer.get("id") or answer.get("error", {}).get("id"):
            self._task = self._task._replace(sample=answer.get("id") or answer["error"]["id"])
        seconds = round(time.monotonic() - began, 4)
        sample = Sample(handler.kind, handler.name, split.name, position, self._task.sample or place, None, seconds)
        self.result.samples.append(sample)
        if "error" in answer:
            self._tell(answer["error"])
            return False
        sample.value = msgspec.convert(answer["value"], Value)
        problems = [*checks.value_problems(handler, sample.value), *changes.look(sample)]
        for problem in problems:
            found = self.result.failures if problem.is_failure else self.result.warnings
            found.append(self._task.finding(problem.kind, problem.text, problem.advice))
        return not any(problem.is_failure for problem in problems)

    def _begin_again(self) -> None:
        """Have another child do what comes next, after one was ended by a handler. Raises CodeError, _GivenUpError."""
        self._deaths += 1
        self._task = advice.Task(self._task.stage, "")
        for request in ({"do": "functions"}, self._splits_request()):
            if self._deaths > _MOST_DEATHS or "error" in self._ask(request, self._task):
                raise _GivenUpError

    def _splits_request(self) -> dict[str, Any]:
        return {"do": "splits", "database": str(self._database)}

    def _ask(self, request: dict[str, Any], task: Task) -> dict[str, Any]:
        assert self.sandbox is not None  # no stage that asks comes before the one that makes it
        return self.sandbox.ask(request, task.function or "", self._locate)

    def _tell(self, facts: dict[str, Any]) -> None:
        self._measure()
        self.result.failures.append(self._advisor.of_facts(facts, self._task, self._peak))

    def _warn(self, kind: str, text: str, what_to_do: str) -> None:
        self.result.warnings.append(self._task.finding(kind, text, what_to_do))

    def finding_of(self, error: CodeError) -> Finding:
        """What is told when the child ended, or when an ingest, a derived field or the declaration failed."""
        self._measure()
        task = self._task if self._task.kind else _task_of(error.doing, self._task, self.result.functions)
        task = task._replace(sample=error.at or task.sample)
        if error.death is not None:
            return self._advisor.of_death(error.death, error.stack, task, self._peak)
        facts = dict(error.facts)
        if facts.get("error") in ("DeclarationError", "ReturnError"):
            # Our own words; the first line has the place.
            where, _, text = str(error).partition("\n")[0].partition(": ")
            facts.update(kind="declaration" if facts["error"] == "DeclarationError" else "ingest_result", text=text)
            facts.update(where=where, advice="mend that line")
        return self._advisor.of_facts(facts, task, self._peak)

    def _measure(self) -> int:
        """The most memory that was held since this was last called."""
        if self.sandbox is None:
            return 0
        own = 0
        if self.sandbox.alive:
            # What the guard sees now and then is of all processes, what the child knows of itself is exact.
            own = self.sandbox.ask({"do": "memory"}, "", self._locate).get("memory", 0)
            self.sandbox.settle()
        self._peak, self.sandbox.peak = max(own, self.sandbox.peak), 0
        return self._peak

    def _status(self, name: str) -> str:
        return next((stage.status for stage in self.result.stages if stage.name == name), OK)

    def _cause(self, name: str) -> str:
        """The stage that failed: the one of this name, or the one it was skipped for."""
        stage = next(stage for stage in self.result.stages if stage.name == name)
        return stage.because if stage.status == SKIPPED and stage.because else name


def spread(length: int, number: int) -> list[int]:
    """So many positions, the first one among them, evenly over a split of this length."""
    if number <= 1 or length <= 1:
        return [0][:length]
    number = min(number, length)
    return sorted({round(each * (length - 1) / (number - 1)) for each in range(number)})


def counted(number: int, what: str) -> str:
    """`1 split`, `3 splits`."""
    return f"{number:,} {what}" if number == 1 or what == "metadata" else f"{number:,} {what}s"


def _task_of(doing: str, task: Task, functions: list[Function]) -> Task:
    """The task behind the sandbox's own words, such as `the ingest load`."""
    kind, _, name = doing.removeprefix("the ").partition(" ")
    where = next((each.where for each in functions if (each.kind, each.name) == (kind, name)), "")
    return task._replace(kind=kind, name=name, where=where) if name else task
