"""botocore's descriptions of services, read in a third of the time: half of what it costs to make a client.

botocore reads them through its session's `data_loader`, which may be replaced (botocore.loaders). This one decodes JSON
with msgspec, into the same dicts, and takes every folder of descriptions for a service, where botocore looks into each
of some 400 to name those of one kind; one that has not the kind in question is found out all the same.
"""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING, Any

import msgspec
from botocore.loaders import Loader

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.session import Session

__all__ = ["use_fast_models"]

_OPENERS: dict[str, Callable[..., Any]] = {".json": open, ".json.gz": gzip.open}


def use_fast_models(session: Session) -> None:
    """Make this session, which has no client yet, read descriptions so."""
    extra = session.get_config_variable("data_path") or ""
    paths = [os.path.expanduser(os.path.expandvars(path)) for path in extra.split(os.pathsep) if path]
    session.register_component("data_loader", _Models(extra_search_paths=paths))


class _Files:
    """Files by their path without the extension."""

    def exists(self, path: str) -> bool:
        return any(os.path.isfile(path + extension) for extension in _OPENERS)

    def load_file(self, path: str) -> Any:
        """What the file says; None where there is none."""
        for extension, opened in _OPENERS.items():
            if os.path.isfile(path + extension):
                with opened(path + extension, "rb") as file:
                    return msgspec.json.decode(file.read())
        return None


class _Models(Loader):  # type: ignore[misc]
    FILE_LOADER_CLASS = _Files

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002
        return sorted({name for path in self.search_paths if os.path.isdir(path) for name in os.listdir(path)})
