"""Imports of the staged text of `index.py` and its neighbours, whatever stands in the work tree.

A module found here has the path of its file in the work tree as `__file__`, and tracebacks show the staged lines.
A module beside `index.py` comes before installed packages, as it does for a script; one that is found from the
root of the repository comes after them, and so does a folder without `__init__.py`.

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import linecache
import os
import sys
from importlib.abc import InspectLoader, MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType


class StagedModules(InspectLoader):
    """The staged sources, by their path relative to `root`, with the module that starts it all: `entry`."""

    def __init__(self, root: str, entry: str, sources: Mapping[str, str]) -> None:
        self._root = root
        self.entry = entry
        self._sources = {path: text.removeprefix("\ufeff") for path, text in sources.items()}
        self.folders = list(dict.fromkeys((entry.rpartition("/")[0], "")))
        """Where modules are looked for: beside `index.py`, then at the root."""
        self._claimed: dict[str, str] = {}
        """The path of each module that comes from here (a folder's, for one without `__init__.py`)."""
        self._aside: dict[str, ModuleType] = {}
        for path, text in self._sources.items():
            real = self.real_path(path)
            linecache.cache[real] = (len(text), None, text.splitlines(keepends=True), real)

    @property
    def entry_source(self) -> str:
        return self._sources[self.entry]

    def real_path(self, path: str) -> str:
        return os.path.join(self._root, *path.split("/"))

    def staged_path(self, real: str) -> str | None:
        """The path, relative to the root, of the staged file with this `__file__`."""
        return next((path for path in self._sources if self.real_path(path) == real), None)

    def install(self) -> None:
        """Let imports find the staged modules, in place of those of another root."""
        others = [each for each in sys.meta_path if isinstance(each, _Finder)]
        if others and others[0].modules is self:
            return
        for finder in others:
            sys.meta_path.remove(finder)
            finder.modules.set_aside()
        sys.modules.update(self._aside)
        finders = [*sys.meta_path, importlib.machinery.PathFinder]
        before = finders.index(importlib.machinery.PathFinder)
        sys.meta_path.insert(before, _Finder(self, self.folders[:1], folders_too=False))
        sys.meta_path.append(_Finder(self, self.folders, folders_too=True))

    def set_aside(self) -> None:
        """Take the modules that came from here out of Python's sight, until they are installed again."""
        self._aside = {name: sys.modules.pop(name) for name in self._claimed if name in sys.modules}

    def load_entry(self) -> ModuleType:
        """Execute the staged `index.py` as the module named after it."""
        name = self.entry.rpartition("/")[2].removesuffix(".py")
        module = importlib.util.module_from_spec(self.spec(name, self.entry))
        sys.modules[name] = module
        self.exec_module(module)
        return module

    def find(self, name: str, folders: Sequence[str], *, folders_too: bool) -> importlib.machinery.ModuleSpec | None:
        """The spec of the module of this name in one of these folders, if its text is staged."""
        parent, _, last = name.rpartition(".")
        if parent:
            if parent not in self._claimed:
                return None
            folders = [self._claimed[parent].removesuffix("/__init__.py")]
        for folder in folders:
            stem = f"{folder}/{last}" if folder else last
            for path in (f"{stem}/__init__.py", f"{stem}.py"):
                if path in self._sources:
                    return self.spec(name, path)
            if (folders_too or parent) and any(path.startswith(f"{stem}/") for path in self._sources):
                self._claimed[name] = stem
                spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = [self.real_path(stem)]
                return spec
        return None

    def spec(self, name: str, path: str) -> importlib.machinery.ModuleSpec:
        self._claimed[name] = path
        real = self.real_path(path)
        is_package = path.endswith("/__init__.py")
        spec = importlib.util.spec_from_file_location(
            name, real, loader=self, submodule_search_locations=[os.path.dirname(real)] if is_package else None
        )
        assert spec is not None  # it always is with a loader given
        spec.cached = None
        return spec

    def get_source(self, fullname: str) -> str:
        return self._sources[self._claimed[fullname]]

    def get_filename(self, fullname: str) -> str:
        return self.real_path(self._claimed[fullname])

    def is_package(self, fullname: str) -> bool:
        return self._claimed[fullname].endswith("/__init__.py")

    def exec_module(self, module: ModuleType) -> None:
        name = module.__spec__.name if module.__spec__ else module.__name__
        code = compile(self.get_source(name), self.get_filename(name), "exec", dont_inherit=True)
        exec(code, vars(module))  # the user's own code, in their process


class _Finder(MetaPathFinder):
    def __init__(self, modules: StagedModules, folders: list[str], *, folders_too: bool) -> None:
        self.modules = modules
        self._folders = folders
        self._folders_too = folders_too

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return self.modules.find(fullname, self._folders, folders_too=self._folders_too)
