"""The child process that runs the user's code: `python worker.py`, in the user's own interpreter (3.10 or newer; 3.8
for what is no `index.py`).

Protocol: JSON, one value a line, over what are standard input and output at the start. They are moved out of the way
at once: what user code prints goes to standard error, and what it reads from standard input is empty.

::

    > {"root": …, "clean": …, "program": "index", "entry": "index.py", "sources": {path: text}, "spool": folder,
       "volumes": null}                 first line; no answer
    > {"do": "declare"}
    < {"declaration": …}
    > {"do": "ingest", "name": …, "limit": null}
    < [value, …]                        one line a row, values in the order of the stored fields; so many, at most
    < {"end": true, "more": false}      `more`: there are further rows, which were not asked for
    > {"do": "derive", "name": …, "rows": [[input, …], …]}
    < [value]                           one line a row
    < {"end": true}
    < {"error": {"text": …, "where": "index.py:12, in resize", "row": 3}}     instead of the rest of any answer
    < {"error": {"text": …, "where": null, "place": "index.py:12", "row": 3}}  when user code did not raise it
    > {"do": "functions"}               and so on: the requests of a parse, see `parse/serving.py`
    < {"need": path}                    in the middle of one of them: where is the file of a row?
    > {"path": path}                    null when its data is not on this machine

`root` is the work tree: there ingests and derived fields run, once, for the one who commits. Everything else is what
others will run as well, and is run from `clean`, a folder that holds no more than they would have (null: from the work
tree too). Where both are needed, `index.py` is executed in each.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from gds_lfs.dataset.channel import Channel
    from gds_lfs.dataset.parse.serving import Serving
    from gds_lfs.dataset.spool import Spool
    from gds_lfs.dataset.staged import StagedModules

_SETUP_VARIABLE = "_GIT_DATASETS_WORKER"
"""Where a process that user code spawns (multiprocessing) finds the first line, to import the same modules."""

_FOR_THE_COMMITTER = ("ingest", "derive")
"""The requests that are answered from the work tree."""


class Place:
    """The code in one folder: the work tree, or a clean one. Modules of the one are unknown in the other."""

    def __init__(self, setup: dict[str, Any], root: str, spool: Spool) -> None:
        from gds_lfs.dataset.session import Session
        from gds_lfs.dataset.staged import StagedModules

        self.root = root
        self.modules = StagedModules(root, setup["entry"], setup["sources"])
        self.session = Session(self.modules, spool, setup["sources"], setup["entry"])
        self._shared = os.path.join(setup["spool"], ".clean.json" if root == setup.get("clean") else ".setup.json")
        with open(self._shared, "w", encoding="ascii") as file:
            json.dump({**setup, "root": root}, file)

    def enter(self) -> None:
        """Let imports, also those of processes that user code spawns, find this folder's modules."""
        self.modules.install()
        os.environ[_SETUP_VARIABLE] = self._shared
        sys.argv = [self.modules.real_path(self.modules.entry)]

    def report(self, error: BaseException, running: str | None) -> dict[str, Any]:
        """What is told of an exception in user code."""
        from gds_lfs.dataset.failure import report
        from gds_lfs.dataset.parse.place import facts

        return {**report(error, self.modules, running), "facts": facts(error, self.root)}


def serve(channel: Channel, work: Place, clean: Place, serving: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer requests until they end. Whatever user code raises, sys.exit included, becomes an answer."""
    own = os.getpid()
    while (request := channel.receive()) is not None:
        sent = 0
        here = work if request["do"] in _FOR_THE_COMMITTER else clean
        try:
            here.enter()
            os.chdir(here.root)  # user code may have left it
            if request["do"] == "declare":
                channel.send({"declaration": here.session.declare().to_json()})
            elif request["do"] in _FOR_THE_COMMITTER:
                ingests = request["do"] == "ingest"
                session = here.session
                name = request["name"]
                rows = session.ingest(name, request["limit"]) if ingests else session.derive(name, request["rows"])
                more = False
                for row in rows:
                    more = not row
                    if row:
                        channel.send(row)
                        sent += 1
                channel.send({"end": True, "more": more})
            else:
                answer = serving(request)
                if os.getpid() == own:
                    channel.send(answer)
        except BaseException as error:
            if os.getpid() != own:
                os._exit(1)  # a process that user code forked, and that came back here
            channel.send({"error": {**here.report(error, request.get("name")), "row": sent + 1}})
        if os.getpid() != own:
            os._exit(1)
        _flush(channel)


def _flush(channel: Channel) -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    channel.flush()


def main() -> None:
    """Set the process up (see the module's docstring) and serve the parent."""
    _bootstrap()
    from gds_lfs.dataset.channel import open_channel, write_stacks_to

    channel = open_channel()
    setup = channel.receive()
    if setup is None:
        return
    write_stacks_to(os.path.join(setup["spool"], ".stacks"))
    if setup.get("program", "index") != "index":
        _serve_other(channel, setup)
        return
    from gds_lfs.dataset.spool import Spool

    spool = Spool(setup["spool"])
    work = Place(setup, setup["root"], spool)
    clean = work if setup.get("clean") is None else Place(setup, setup["clean"], spool)
    serving: list[Serving] = []  # made when it is first needed: most children never need one

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if not serving:
            serving.append(_own_serving(channel, setup, clean))
        setup["database"] = request.get("database", "")
        return serving[0].answer(request)

    serve(channel, work, clean, answer)


def _own_serving(channel: Channel, setup: dict[str, Any], place: Place) -> Serving:
    """The parse of an `index.py`. Rows are read from the database that the request for splits names."""
    from gds_lfs.dataset.parse.audit import Audit
    from gds_lfs.dataset.parse.own import OwnProgram
    from gds_lfs.dataset.parse.rows import NotFetchedError, Rows, Table
    from gds_lfs.dataset.parse.serving import Serving

    audit = Audit([place.root, setup["spool"]], setup.get("volumes"), setup["root"])
    audit.install()
    own = os.getpid()

    def locate(path: str) -> str:
        folder = os.path.join(setup["root"], *setup["entry"].split("/")[:-1])
        here = os.path.join(folder, *path.split("/"))
        found = here if os.getpid() != own else channel.ask({"need": path}).get("path")
        if found is None:
            raise NotFetchedError(
                2, "its data is not on this machine", os.path.join(place.root, here[len(setup["root"]) + 1 :])
            )
        audit.given.add(os.path.realpath(found))
        return str(found)

    def rows() -> Rows:
        declaration, _ = place.session.loaded()
        audit.given.add(os.path.realpath(setup["database"]))
        return Rows(Table(setup["database"], declaration.fields, locate))

    program = OwnProgram(setup["entry"], setup["sources"][setup["entry"]], place.session.loaded, rows)
    return Serving(program, place.root, audit)


def _serve_other(channel: Channel, setup: dict[str, Any]) -> None:
    """Serve the parse of a Tensorleap integration, whose interpreter may be older than an `index.py` needs."""
    from gds_lfs.dataset.parse.audit import Audit
    from gds_lfs.dataset.parse.leap import LeapProgram
    from gds_lfs.dataset.parse.serving import Serving

    root = setup["clean"]
    # code-loader puts the folder above on the path of modules, too.
    audit = Audit([os.path.dirname(root), setup["spool"]], setup.get("volumes"), setup["root"])
    audit.install()
    serving = Serving(LeapProgram(root, setup["entry"]), root, audit)
    own = os.getpid()
    while True:
        request = channel.receive()
        if request is None:
            return
        os.chdir(root)
        answer = serving.answer(request)
        if os.getpid() != own:
            os._exit(1)
        channel.send(answer)
        _flush(channel)


def _bootstrap() -> None:
    """Make `gds_lfs` importable: this package, without its folder's neighbours."""
    init = Path(__file__).resolve().parent.parent / "__init__.py"
    spec = importlib.util.spec_from_file_location("gds_lfs", init, submodule_search_locations=[str(init.parent)])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["gds_lfs"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__" and _SETUP_VARIABLE in os.environ:
    _bootstrap()
    from gds_lfs.dataset.staged import StagedModules

    with open(os.environ[_SETUP_VARIABLE], encoding="ascii") as _shared:
        _setup = json.load(_shared)
    if _setup.get("program", "index") == "index":
        StagedModules(_setup["root"], _setup["entry"], _setup["sources"]).install()
