"""`git-datasets-agent`: stock git-lfs moves its objects through our remotes.

git-lfs starts this program in a repository (see install_lfs.py for the settings, transfer/agent.py for what is said).
It answers first and loads what it needs then: transfer/greeting.py tells why.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from typing import TYPE_CHECKING

from gds_lfs.transfer.greeting import Greeting, greet

if TYPE_CHECKING:
    from gds_lfs.porcelain.lfs_engine import LfsEngine
    from gds_lfs.transfer.rendezvous import Meeting

#: Seconds that an interrupted session has to tidy up.
MOMENT = 0.5


def main() -> None:
    """The entry point: what git-lfs starts."""
    stdin, stdout = _own_streams()
    greeting = greet(stdin, stdout)
    if not greeting.line:
        return
    from gds_lfs.transfer import rendezvous

    meeting = rendezvous.meet(greeting.line)
    if meeting is not None and not isinstance(meeting, rendezvous.Meeting):
        try:
            if rendezvous.hand_over(meeting, stdin, stdout):
                return
        except ConnectionError as error:
            sys.exit(f"git-datasets-agent: {error}")
        meeting = None
    _serve(stdin, stdout, greeting, meeting)


def _serve(stdin: int, stdout: int, greeting: Greeting, meeting: object) -> None:
    gc.disable()  # one session makes no garbage worth looking for
    import select

    from gds_lfs.porcelain.lfs_engine import LfsEngine
    from gds_lfs.transfer.agent import Agent
    from gds_lfs.transfer.agent_loop import serve, serve_all
    from gds_lfs.transfer.rendezvous import Meeting

    engine = LfsEngine()
    agent = Agent(engine)
    met = meeting if isinstance(meeting, Meeting) else None
    interrupted = True
    try:
        if hasattr(select, "poll"):
            serve_all(agent, (stdin, stdout), greeting, met, lambda: _interrupt(met, engine))
        else:
            with open(stdin, "rb") as source, open(stdout, "wb") as target:
                serve(agent, source, target, greeting)
        interrupted = agent.interrupted
    except KeyboardInterrupt:
        _end_soon(met, engine)
        sys.exit("git-datasets-agent: interrupted")
    except Exception as error:
        sys.exit(f"git-datasets-agent: {engine.report(error)}")
    finally:
        if met is not None:
            met.close()
        engine.close(interrupted=interrupted)
        gc.freeze()  # nor is there any in what it had, which Python would look through at its end


def _interrupt(meeting: Meeting | None, engine: LfsEngine) -> None:
    """Nobody is left to hear an answer: end what the main thread is at."""
    import signal
    import threading

    _end_soon(meeting, engine)
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # also wakes it where it waits


def _end_soon(meeting: Meeting | None, engine: LfsEngine) -> None:
    """Give this process a moment to end by itself. A request that has stalled could hold it for minutes."""
    import threading

    def end() -> None:
        time.sleep(MOMENT)
        try:
            if meeting is not None:
                meeting.close()
            engine.abandon()
        finally:
            os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _own_streams() -> tuple[int, int]:
    """The protocol's descriptors, out of reach for whatever prints: stdout is stderr from now on."""
    stdin, stdout = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout = sys.stderr
    return stdin, stdout
