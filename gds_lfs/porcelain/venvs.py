"""`git datasets venv`: the environments that were made from requirements.txt files, in the user's cache."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gds_lfs.dataset.environment import Environments
from gds_lfs.git.config import cache_dir
from gds_lfs.porcelain.messages import count, human_bytes

if TYPE_CHECKING:
    from gds_lfs.dataset.environment import Environment
    from gds_lfs.porcelain.messages import Messages

DAYS = 30
"""An environment that nobody asked for in so many days is one that nobody needs."""

_DAY = 24 * 3600
_SHOWN = 4


def environments() -> Environments:
    """Those of this user."""
    return Environments(cache_dir() / "venvs")


def list_environments(messages: Messages) -> None:
    """One line for each, the one used last first: id, Python, size, age, last use, requirements."""
    found = environments().list()
    now = time.time()
    for environment in found:
        messages.result(
            f"{environment.key[:8]}  {environment.python:<14}  {human_bytes(environment.size):>9}  "
            f"made {_ago(now - environment.made):<13}  used {_ago(now - environment.used):<13}  "
            f"{_requirements(environment)}"
        )
    total = sum(environment.size for environment in found)
    messages.note(f"{count(len(found), 'environment')}, {human_bytes(total)}, in {cache_dir() / 'venvs'}")


def prune(messages: Messages, *, everything: bool) -> None:
    """Remove those that were not used lately, or all; one that is wanted again is made again."""
    removed = environments().prune(0 if everything else DAYS * _DAY)
    for environment in removed:
        messages.note(f"removed {environment.key[:8]} ({environment.python}; {_requirements(environment)})")
    freed = human_bytes(sum(environment.size for environment in removed))
    messages.note(f"{count(len(removed), 'environment')} removed, {freed} freed" if removed else "nothing to remove")


def _requirements(environment: Environment) -> str:
    lines = environment.requirements
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return (", ".join(lines[:_SHOWN]) or "no requirements") + more


def _ago(seconds: float) -> str:
    """`just now`, `5 minutes ago`, `3 days ago`."""
    for size, noun in ((_DAY, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{count(int(seconds // size), noun)} ago"
    return "just now"
