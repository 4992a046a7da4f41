"""The child process that runs the user's code: `python worker.py`, in the user's own interpreter (3.10 or newer).

Protocol: JSON, one value a line, over what are standard input and output at the start. They are moved out of the way
at once: what user code prints goes to standard error, and what it reads from standard input is empty.

::

    > {"root": …, "entry": "index.py", "sources": {path: text}, "spool": folder}     first line; no answer
    > {"do": "declare"}
    < {"declaration": …}
    > {"do": "ingest", "name": …}
    < [value, …]                        one line a row, values in the order of the stored fields
    < {"end": true}
    > {"do": "derive", "name": …, "rows": [[input, …], …]}
    < [value]                           one line a row
    < {"end": true}
    < {"error": {"text": …, "where": "index.py:12, in resize", "row": 3}}     instead of the rest of any answer
    < {"error": {"text": …, "where": null, "place": "index.py:12", "row": 3}}  when user code did not raise it

A scalar travels as its type encodes it; a file as an absolute path to the child, and as the name of a file in the
spool folder from it. The end of standard input ends the process.

Standard library only. Nothing is imported from the folder of this file or of the package's other dependencies.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # A script's folder comes first on the path, where our modules would stand before others of their name.
    _own = __file__.replace("\\", "/").rpartition("/")[0]
    sys.path[:] = [path for path in sys.path if path.replace("\\", "/") != _own]
    sys.dont_write_bytecode = True

import importlib.util
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gds_lfs.dataset.declaration import Declaration, Field
    from gds_lfs.dataset.spool import Spool
    from gds_lfs.dataset.staged import StagedModules

_SETUP_VARIABLE = "_GIT_DATASETS_WORKER"
"""Where a process that user code spawns (multiprocessing) finds the first line, to import the same modules."""

_FLUSH_SIZE = 1 << 15
_FLUSH_SECONDS = 0.05

# Set for hooks, they would send the git commands of user code to a temporary index or another repository.
_GIT_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
)


class Channel:
    """The parent's end of the pipes. Held apart from Python's buffers, which a fork of user code would flush again."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests = os.fdopen(requests, "rb")
        self._replies = replies
        self._pending = bytearray()
        self._flushed = 0.0

    def receive(self) -> dict[str, Any] | None:
        """The parent's next request, or None at its end."""
        line = self._requests.readline()
        request: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        return request

    def send(self, message: object) -> None:
        """Queue a line; it leaves at once when the last one left a while ago."""
        self._pending += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(self._pending) >= _FLUSH_SIZE or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        pending, self._pending = memoryview(bytes(self._pending)), bytearray()
        while pending:
            pending = pending[os.write(self._replies, pending) :]
        self._flushed = time.monotonic()


class Session:
    """The user's dataset, loaded when the first request needs it."""

    def __init__(self, modules: StagedModules, spool: Spool, sources: dict[str, str], entry: str) -> None:
        self._modules = modules
        self._spool = spool
        self._sources = sources
        self._entry = entry
        self._cls: type = object
        self._declaration: Declaration | None = None

    def declare(self) -> Declaration:
        """The declaration with its fingerprints. Executes `index.py` the first time."""
        if self._declaration is None:
            from gds_lfs.dataset.fingerprint import Source
            from gds_lfs.dataset.reader import find_dataset, read_class, with_code

            module = self._modules.load_entry()
            self._cls = find_dataset(vars(module), module.__name__)
            source = Source(self._sources, self._entry)
            self._declaration = with_code(read_class(self._cls, vars(module)), source.function)
        return self._declaration

    def ingest(self, name: str) -> Iterator[list[Any]]:
        """The rows the ingest brings, encoded. Raises ReturnError, and whatever the user's code raises."""
        from gds_lfs.dataset.rows import shape

        fields = self.declare().stored
        function: Callable[[], object] = getattr(self._cls, name)
        for number, row in enumerate(shape(function(), fields), 1):
            yield [self._ingested(value, field, number) for value, field in zip(row, fields, strict=True)]

    def derive(self, name: str, rows: list[list[Any]]) -> Iterator[list[Any]]:
        """The field's value for each row of inputs, encoded. Raises like `ingest`."""
        declaration = self.declare()
        field = declaration.field(name)
        inputs = [declaration.field(each) for each in field.inputs]
        function: Callable[..., object] = getattr(self._cls, name)
        for row in rows:
            result = function(*(_argument(value, each) for value, each in zip(row, inputs, strict=True)))
            yield [self._encoded(result, field)]

    def _ingested(self, value: object, field: Field, number: int) -> Any:
        from gds_lfs.dataset.rows import MISSING, ReturnError

        missing = value is MISSING or (value is None and not field.type.optional)
        if missing and not field.required:
            return field.type.encode(field.default)
        if value is MISSING and not field.type.optional:
            raise ReturnError(f"{field.name}, row {number}: no value, and the field has no default")
        try:
            return self._encoded(None if value is MISSING else value, field)
        except ReturnError as error:
            raise ReturnError(f"{field.name}, row {number}: {error}") from None

    def _encoded(self, value: object, field: Field) -> Any:
        from gds_lfs.dataset.rows import ReturnError

        if value is not None and field.type.is_file:
            return self._spool.take(value, field.type)
        try:
            return field.type.encode(field.type.check(value))
        except ValueError as error:
            raise ReturnError(str(error)) from None


def _argument(value: Any, field: Field) -> object:
    from gds_lfs.dataset.kinds import recognise
    from gds_lfs.dataset.schema import File
    from gds_lfs.dataset.spool import head

    if value is None or not field.type.is_file:
        return field.type.to_python(field.type.decode(value)) if not field.type.is_file else None
    kind = recognise(head(value), os.path.splitext(value)[1][1:], field.type.kinds)
    return File(value, kind.name if kind else None)


def serve(
    channel: Channel, session: Session, root: str, report: Callable[[BaseException, str | None], dict[str, Any]]
) -> None:
    """Answer requests until they end. Whatever user code raises, sys.exit included, becomes an answer."""
    own = os.getpid()
    while (request := channel.receive()) is not None:
        sent = 0
        try:
            os.chdir(root)  # user code may have left it
            if request["do"] == "declare":
                channel.send({"declaration": session.declare().to_json()})
            else:
                ingests = request["do"] == "ingest"
                rows = session.ingest(request["name"]) if ingests else session.derive(request["name"], request["rows"])
                for row in rows:
                    channel.send(row)
                    sent += 1
                channel.send({"end": True})
        except BaseException as error:
            if os.getpid() != own:
                os._exit(1)  # a process that user code forked, and that came back here
            channel.send({"error": {**report(error, request.get("name")), "row": sent + 1}})
        sys.stdout.flush()
        sys.stderr.flush()
        channel.flush()


def _end_with_parent(parent: int) -> None:
    """End this process, and what it started, soon after its parent was killed: user code may never come back."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Set the process up (see the module's docstring) and serve the parent."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    for name in _GIT_VARIABLES:
        os.environ.pop(name, None)
    channel = Channel(requests, replies)
    setup = channel.receive()
    if setup is None:
        return
    shared = os.path.join(setup["spool"], ".setup.json")
    with open(shared, "w", encoding="ascii") as file:
        json.dump(setup, file)
    os.environ[_SETUP_VARIABLE] = shared
    modules = _install(setup)

    from gds_lfs.dataset.failure import report
    from gds_lfs.dataset.spool import Spool

    sys.argv = [modules.real_path(setup["entry"])]
    session = Session(modules, Spool(setup["spool"]), setup["sources"], setup["entry"])
    serve(channel, session, setup["root"], lambda error, running: report(error, modules, running))


def _install(setup: dict[str, Any]) -> StagedModules:
    """Make the staged modules importable, and `gds_lfs`: this package, without its folder's neighbours."""
    init = Path(__file__).resolve().parent.parent / "__init__.py"
    spec = importlib.util.spec_from_file_location("gds_lfs", init, submodule_search_locations=[str(init.parent)])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["gds_lfs"] = package
    spec.loader.exec_module(package)

    from gds_lfs.dataset.staged import StagedModules

    modules = StagedModules(setup["root"], setup["entry"], setup["sources"])
    modules.install()
    return modules


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__" and _SETUP_VARIABLE in os.environ:
    with open(os.environ[_SETUP_VARIABLE], encoding="ascii") as _shared:
        _install(json.load(_shared))
