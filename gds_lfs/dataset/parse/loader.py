"""The user's code-loader, Tensorleap's package that scripts register their functions with: found and quietened.

It reports its import to an analytics host and writes to the home folder unless a variable tells it not to, which older
ones do not read: the module that does it is replaced by one that does nothing. It also prints a table when a process
ends, unless it believes to be on the platform. Both are seen to before its import.

Standard library only, and Python 3.8: the user's interpreter runs it.
"""

from __future__ import annotations

import os
import re
import sys
from types import ModuleType
from typing import Any, NamedTuple

from gds_lfs.dataset.parse.program import ProgramError

NAME = "code-loader"
TESTED = ((1, 0, 180), (1, 0, 214))
"""The oldest and the newest that were tried."""
RANGE = f">={'.'.join(map(str, TESTED[0]))},<={'.'.join(map(str, TESTED[1]))}"
PYTHONS = ((3, 8), (3, 12))
"""The oldest and the newest Python that it runs on."""

_ANALYTICS = "code_loader.mixpanel_tracker"
_ANALYTICS_OFF = "TL_DISABLE_ANALYTICS"
_ON_PLATFORM = "IS_TENSORLEAP_PLATFORM"


class CodeLoader(NamedTuple):
    """What is used of it: the class `LeapLoader`, the binder that holds what is registered, the version."""

    leap_loader: Any
    binder: Any
    version: str

    @property
    def was_tested(self) -> bool:
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])
        return TESTED[0] <= numbers <= TESTED[1] and "dev" not in self.version


def import_code_loader() -> CodeLoader:
    """Import it. Raises ProgramError where it is not installed."""
    os.environ[_ANALYTICS_OFF] = "1"  # for the processes that the script starts
    sys.modules[_ANALYTICS] = _Silent(_ANALYTICS)
    platform = os.environ.get(_ON_PLATFORM)
    os.environ[_ON_PLATFORM] = "true"  # no table at the end of the process, no hook for exceptions
    try:
        from code_loader import LeapLoader, leap_binder  # type: ignore[import-not-found,unused-ignore]
        from code_loader.inner_leap_binder import (  # type: ignore[import-not-found,unused-ignore]
            leapbinder_decorators,  # noqa: F401 - it looks at the variable when it is imported
        )
    except ModuleNotFoundError as error:
        if error.name != "code_loader":
            raise
        raise ProgramError(
            f"{NAME} is not installed for {sys.executable}",
            "module_not_found",
            "",
            "git config datasets.dynamicDependencies true makes an environment that has it; "
            f"or: {sys.executable} -m pip install '{NAME}{RANGE}'",
        ) from None
    finally:
        if platform is None:
            os.environ.pop(_ON_PLATFORM)
        else:
            os.environ[_ON_PLATFORM] = platform
    return CodeLoader(LeapLoader, leap_binder, _installed_version())


class _Silent(ModuleType):
    """A module whose every name is a function that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()


class _Nothing:
    def __call__(self, *_arguments: object, **_more: object) -> None:
        pass

    def __getattr__(self, _name: str) -> _Nothing:
        return self


def _installed_version() -> str:
    from importlib import metadata

    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "of an unknown version"
