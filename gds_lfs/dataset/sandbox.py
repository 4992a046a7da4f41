"""The parent's end of the child that runs the user's code (`worker` has the protocol).

Whatever the user's code does (an exception, a crash, a hang, a flood of output), the outcome here is a DatasetError
that names what was running; the child and everything it started end with the `with` block.
"""

from __future__ import annotations

import subprocess
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from gds_lfs.dataset.child import Child, ChildDied, NotStartedError
from gds_lfs.dataset.declaration import Declaration
from gds_lfs.dataset.fieldtype import FieldType, Scalar
from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

Value = Scalar | Path
"""A stored scalar, or the path of a file: an input's own, or one that the child left in the spool folder."""

OLDEST_PYTHON = (3, 10)
"""The oldest Python that can run an `index.py`."""

_WORKER = Path(__file__).with_name("worker.py")
_BATCH_ROWS = 64
_BATCH_SIZE = 1 << 20


class CodeError(DatasetError):
    """User code failed, while it was `doing` something, `at` a row if it has got that far.

    `facts` is what the child told (see `parse.place`); where it told nothing, `death` is how it ended and `stack` what
    Python wrote down then.
    """

    def __init__(
        self,
        message: str,
        doing: str = "",
        at: str = "",
        *,
        facts: Mapping[str, Any] | None = None,
        death: ChildDied | None = None,
        stack: str = "",
    ) -> None:
        super().__init__(message)
        self.doing = doing
        self.at = at
        self.facts = facts or {}
        self.death = death
        self.stack = stack


class Confines(NamedTuple):
    """What a child may do. `clean` is the folder that handlers run from, which holds what others would have; without
    it they see the work tree. `volumes` are the folders that may be read besides it (None: any).
    """

    clean: Path | None = None
    volumes: tuple[str, ...] | None = None
    memory: int | None = None
    """Bytes that it may hold."""
    program: str = "index"
    """`index` for an `index.py`, `leap` for a Tensorleap integration."""


class Sandbox:
    """One child process, in which one `index.py` is loaded once.

    `sources` holds the staged text of `entry` (the path of `index.py`) and of the Python files it may import, by
    their path relative to `root`, the child's working directory. Files that user code gives back land in the folder
    `spool`. `output` gets what it prints, as it comes, from another thread. A child that sends nothing for `timeout`
    seconds is ended.
    """

    def __init__(
        self,
        python: str,
        root: Path,
        entry: str,
        sources: Mapping[str, str],
        spool: Path,
        *,
        output: Callable[[bytes], None] | None = None,
        timeout: float | None = None,
        confines: Confines | None = None,
    ) -> None:
        confines = confines or Confines()
        self._python = python
        self._setup = {
            "root": str(root),
            "clean": None if confines.clean is None else str(confines.clean),
            "program": confines.program,
            "entry": entry,
            "sources": dict(sources),
            "spool": str(spool),
            "volumes": confines.volumes,
        }
        self._memory_limit = confines.memory
        self._root = root
        self._entry = entry
        self._spool = spool
        self._output = output
        self._timeout = timeout
        self._declaration: Declaration | None = None
        self._child: Child | None = None
        self._at = ""
        self.cut: list[str] = []
        """The ingests that had more rows than were asked for."""
        self.peak = 0
        """The most memory that was held, by the child and all it started, since this was last set."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._child is not None:
            self._child.close(patience=0)  # it may be in the middle of anything
        self.close()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._forget()

    @property
    def alive(self) -> bool:
        """Whether there is a child, as far as is known."""
        return self._child is not None

    def set_timeout(self, seconds: float | None) -> None:
        """From now on, a child that is silent for so long is ended."""
        self._timeout = seconds
        if self._child is not None:
            self._child.timeout = seconds

    def settle(self) -> None:
        """Wait for all that the child has printed, and take note of the memory it holds."""
        if self._child is not None:
            self._child.settle_output()
            self.peak = max(self.peak, self._child.take_peak())

    def ask(self, request: Mapping[str, Any], doing: str, locate: Callable[[str], Path | None]) -> dict[str, Any]:
        """The answer to one request of a parse, which may tell of an error. `locate` gives the file of a row.

        Raises CodeError when the child ended.
        """
        self._send(request, doing)
        while True:
            answer: dict[str, Any] = self._listen(doing)
            if "need" not in answer:
                return answer
            path = locate(answer["need"])
            self._send({"path": None if path is None else str(path)}, doing)

    def declare(self) -> Declaration:
        """What the `index.py` declares, with fingerprints. The child starts, and executes it, the first time."""
        if self._declaration is None:
            self._send({"do": "declare"}, "")
            self._declaration = Declaration.from_json(self._receive("", _no_row)["declaration"])
        return self._declaration

    def ingest(self, name: str, limit: int | None = None) -> Iterator[list[Value]]:
        """The rows that the ingest brings, `limit` of them at most, values in the order of the stored fields.

        What is beyond the limit is not asked for; then `cut` has the ingest's name.
        """
        types = [field.type for field in self.declare().stored]
        doing = f"the ingest {name}"
        self._send({"do": "ingest", "name": name, "limit": limit}, doing)
        for number in count(1):
            self._at = f"row {number}" if number > 1 else ""
            answer = self._receive(doing, lambda row: f" at row {row}" if row > 1 else "")
            if isinstance(answer, dict):
                self._at = ""
                if answer["more"]:
                    self.cut.append(name)
                return
            yield [self._decoded(value, kind) for value, kind in zip(answer, types, strict=True)]

    def derive(self, name: str, rows: Iterable[tuple[str, Sequence[Value]]]) -> Iterator[Value]:
        """The values of the derived field for these rows, each given by its id and its inputs.

        The next batch is sent before the last value of the one before is handed out: the child computes while the
        caller stores. Only one batch is under way at a time, so neither side ever blocks the other.
        """
        declaration = self.declare()
        kind = declaration.field(name).type
        doing = f"the transform {name}"
        batches = _batches(rows, [declaration.field(each).type for each in declaration.field(name).inputs])
        batch = self._send_batch(name, batches)
        while batch is not None:
            ids = batch.ids

            def row_name(row: int, ids: Sequence[str] = ids) -> str:
                return f" for row {ids[row - 1]}"

            for position, identity in enumerate(ids):
                self._at = f"row {identity}"
                value = self._decoded(self._receive(doing, row_name)[0], kind)
                if position == len(ids) - 1:
                    self._receive(doing, row_name)  # the end of the answer
                    self._at = ""
                    batch = self._send_batch(name, batches)
                yield value

    def _send_batch(self, name: str, batches: Iterator[_Batch]) -> _Batch | None:
        batch = next(batches, None)
        if batch is not None:
            self._send({"do": "derive", "name": name, "rows": batch.rows}, f"the transform {name}")
        return batch

    def _send(self, request: object, doing: str) -> None:
        try:
            if self._child is None:
                # -B: the folders of the user's modules stay as they are.
                command = [self._python, "-B", str(_WORKER)]
                self._child = Child(command, self._root, self._output, self._timeout, self._memory_limit)
                self._child.send(self._setup)
            self._child.send(request)
        except ChildDied as death:
            self._raise_death(death, doing)

    def _receive(self, doing: str, row_name: Callable[[int], str]) -> Any:
        """The next line of an answer; raises CodeError for an answer of failure, and when there is none."""
        answer = self._listen(doing)
        if isinstance(answer, dict) and "error" in answer:
            self.close()
            error = answer["error"]
            raise CodeError(_failure(error, doing, row_name), doing, self._at, facts=error.get("facts"))
        return answer

    def _listen(self, doing: str) -> Any:
        if self._child is None:
            raise CodeError(f"{self._entry}: the Python that ran it has ended", doing)
        try:
            return self._child.receive()
        except ChildDied as death:
            self._raise_death(death, doing)

    def _raise_death(self, death: ChildDied, doing: str) -> NoReturn:
        has_answered = self._child is not None and self._child.has_answered
        self.close()
        if not has_answered:
            _refuse_old_python(self._python)
        during = f" in {doing}" if doing else ""
        message = f"{self._entry}: the Python that ran it ({self._python}){during} {death}"
        raise CodeError(message, doing, self._at, death=death, stack=self._stacks()) from None

    def _stacks(self) -> str:
        """What Python wrote down when it crashed or was ended."""
        try:
            return (self._spool / ".stacks").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _forget(self) -> None:
        if self._child is not None:
            self.peak = max(self.peak, self._child.take_peak())
            self._child = None

    def _decoded(self, value: Any, kind: FieldType) -> Value:
        if not kind.is_file:
            return kind.decode(value)
        return None if value is None else self._spool / value


class _Batch(NamedTuple):
    ids: list[str]
    rows: list[list[Any]]


def _batches(rows: Iterable[tuple[str, Sequence[Value]]], inputs: Sequence[FieldType]) -> Iterator[_Batch]:
    """The rows in bundles that are small enough to be held at once."""
    batch, size = _Batch([], []), 0
    for row_id, values in rows:
        encoded = [_encoded(value, kind) for value, kind in zip(values, inputs, strict=True)]
        batch.ids.append(row_id)
        batch.rows.append(encoded)
        size += sum(len(value) for value in encoded if isinstance(value, str))
        if len(batch.ids) == _BATCH_ROWS or size >= _BATCH_SIZE:
            yield batch
            batch, size = _Batch([], []), 0
    if batch.ids:
        yield batch


def _encoded(value: Value, kind: FieldType) -> Any:
    return str(value) if isinstance(value, Path) else kind.encode(value)


def _failure(error: Mapping[str, Any], doing: str, row_name: Callable[[int], str]) -> str:
    """Two lines where the user's code raised: its place and error, then what was running. One line otherwise."""
    text, where = error["text"], error["where"]
    if where is None:
        row = row_name(error["row"]) if doing.startswith("the transform") else ""
        return f"{error['place']}: {doing}{row}: {text}" if doing else f"{error['place']}: {text}"
    if not doing:
        return f"{where}: {text}"
    return f"{where}: {text}\n{doing}{row_name(error['row'])} failed; nothing was changed"


def _no_row(_row: int) -> str:
    return ""


def _refuse_old_python(python: str) -> None:
    """Raise NotStartedError when the interpreter is too old to have understood a word."""
    probe = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"
    result = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    numbers = result.stdout.split(".")
    if all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise NotStartedError(f"{python} is Python {result.stdout}; index.py needs {oldest} or newer")
