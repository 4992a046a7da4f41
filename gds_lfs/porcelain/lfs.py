"""`git-datasets-agent`: stock git-lfs moves its objects through our remotes.

git-lfs starts this program in a repository (see install_lfs.py for the settings, transfer/agent.py for what is said).
It answers first and loads what it needs then: transfer/greeting.py tells why.
"""

from __future__ import annotations

import os
import sys

from gds_lfs.transfer.greeting import Greeting, greet


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
    from contextlib import suppress

    from gds_lfs.porcelain.lfs_engine import LfsEngine
    from gds_lfs.transfer.agent import Agent
    from gds_lfs.transfer.agent_loop import serve, serve_all
    from gds_lfs.transfer.rendezvous import Meeting

    engine = LfsEngine()
    try:
        if isinstance(meeting, Meeting):
            with suppress(KeyboardInterrupt):
                serve_all(Agent(engine), stdin, stdout, greeting, meeting)
        else:
            with open(stdin, "rb") as source, open(stdout, "wb") as target, suppress(KeyboardInterrupt):
                serve(Agent(engine), source, target, greeting)
    except Exception as error:
        sys.exit(f"git-datasets-agent: {engine.report(error)}")
    finally:
        if isinstance(meeting, Meeting):
            meeting.close()
        engine.close()


def _own_streams() -> tuple[int, int]:
    """The protocol's descriptors, out of reach for whatever prints: stdout is stderr from now on."""
    stdin, stdout = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout = sys.stderr
    return stdin, stdout
