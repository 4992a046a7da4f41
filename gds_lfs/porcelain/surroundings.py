"""Why code under parse does not find a file or a module: what is in the commit, the work tree and the requirements."""

from __future__ import annotations

import difflib
import os
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.dataset.parse.advice import Told, total_memory
from gds_lfs.git.paths import quote

if TYPE_CHECKING:
    from gds_lfs.porcelain.layout import Layout
    from gds_lfs.porcelain.workspace import Workspace

REQUIREMENTS = "requirements.txt"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "pil": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages that are not called like their module."""


class Surroundings:
    """What is around the code of `entry`. `layout` and `python` are set when they are known."""

    def __init__(self, workspace: Workspace, entry: bytes, rev: str | None) -> None:
        self._workspace = workspace
        self._folder = entry[: entry.rfind(b"/") + 1]
        self._where = "the commit" if rev is None else rev
        self.layout: Layout | None = None
        self.python = ""

    def memory(self) -> int:
        """See `advice.Surroundings`."""
        return total_memory()

    def of_path(self, path: str) -> Told:
        """See `advice.Surroundings`."""
        inside = self._inside(path)
        if inside is None:
            return Told(
                "file_outside",
                "it is outside the repository, so it is absent elsewhere, too",
                "keep it in the repository, or on a volume that every machine has, and name it from there",
            )
        return self._of_commit(inside) or self._of_work_tree(inside) or self._of_nowhere(inside)

    def of_module(self, name: str, similar: list[str]) -> Told:
        """See `advice.Surroundings`."""
        top = name.partition(".")[0]
        text = f"no module named {name!r} in {self.python}" if self.python else f"no module named {name!r}"
        beside = self._module_beside(top)
        if beside is not None:
            return Told("module_not_found", f"{text}; {beside.text}", beside.advice)
        package = self._required(top)
        if package is not None:
            return Told(
                "module_not_found",
                f"{text}; {REQUIREMENTS} asks for {package}, but it is not installed there",
                "have it installed: git config datasets.dynamicDependencies true, "
                f"or: {self.python or 'python'} -m pip install -r {REQUIREMENTS}",
            )
        near = self._similar(top, similar)
        if near:
            return Told("module_not_found", f"{text}; a module {near!r} is there", f"is {near} meant?")
        package = _PACKAGES.get(top.lower(), top)
        return Told(
            "module_not_found",
            f"{text}; it is neither in {REQUIREMENTS} nor in the folder",
            f"add {package} to {REQUIREMENTS} and install it, or choose the Python that has it: "
            "git config datasets.python PATH",
        )

    def _inside(self, path: str) -> bytes | None:
        """The path in the repository, of a file of the clean folder or of the work tree."""
        tops = [self.layout.folder if self.layout else None, self._workspace.repo.top]
        for top in tops:
            for each in (top, None if top is None else Path(os.path.realpath(top))):
                if each is not None and Path(path).is_relative_to(each):
                    return os.fsencode(Path(path).relative_to(each).as_posix())
        return None

    def _of_commit(self, path: bytes) -> Told | None:
        """Of what is in the commit, but was not laid out."""
        layout = self.layout
        if layout is None:
            return None
        if path in layout.unfetched or (path in layout.entries and self._is_data(path)):
            folder = next((each + b"/" for each in layout.data if path.startswith(each + b"/")), path)
            advice = f"fetch it: git datasets pull --include {quote(folder)}"
            return Told("file_not_fetched", "its data was not fetched", advice)
        if path in layout.left_out:
            text = f"it is in {self._where}, but include and exclude of leap.yaml leave it out"
            return Told("file_not_included", text, f"add {quote(path[len(self._folder) :])} to include")
        if self._is_data(path):
            text = "it is the dataset's own data, which is reached through its rows"
            return Told("file_not_found", text, "take it from a row: row.FIELD is the file")
        within = [each for each in layout.left_out if each.startswith(path + b"/")]
        if within and not any(each.startswith(path + b"/") for each in layout.entries - layout.left_out):
            text = f"the folder is in {self._where}, but include and exclude of leap.yaml leave out all that is in it"
            return Told("file_not_included", text, f"add {quote(path[len(self._folder) :])}/** to include")
        return None

    def _of_work_tree(self, path: bytes) -> Told | None:
        repo = self._workspace.repo
        if repo.top is None or not os.path.lexists(repo.absolute(path)):
            return None
        ignored = repo.run("check-ignore", "-z", "--stdin", input=path + b"\0", check=False)
        add = f"git add {'-f ' if ignored else ''}{quote(path)}"
        what = "folder is on this machine, but nothing of it" if os.path.isdir(repo.absolute(path)) else ""
        text = f"the {what} is in {self._where}" if what else f"it is on this machine, but not in {self._where}"
        return Told("file_not_in_commit", f"{text}{' (.gitignore names it)' if ignored else ''}", add)

    def _of_nowhere(self, path: bytes) -> Told:
        names = [os.fsdecode(each) for each in self.layout.entries] if self.layout else []
        wanted = os.fsdecode(path)
        near = [each for each in names if each.lower() == wanted.lower()]
        near = near or [each for each in names if each.rpartition("/")[2] == wanted.rpartition("/")[2]]
        near = near or difflib.get_close_matches(wanted, names, 1, 0.8)
        advice = f"is {near[0]} meant?" if near else "mend the path, or add the file"
        return Told("file_not_found", f"{quote(path)} is neither in {self._where} nor in the work tree", advice)

    def _is_data(self, path: bytes) -> bool:
        data = self.layout.data if self.layout else ()
        return path in data or path.startswith(tuple(each + b"/" for each in data))

    def _module_beside(self, top: str) -> Told | None:
        repo = self._workspace.repo
        for folder in dict.fromkeys((self._folder, b"")):
            for suffix in (".py", "/__init__.py", ""):
                path = folder + os.fsencode(top + suffix)
                if self.layout and (path in self.layout.left_out):
                    text = f"{quote(path)} is in {self._where}, but leap.yaml leaves it out"
                    return Told("", text, f"add {quote(path[len(self._folder) :])} to include")
                there = repo.top is not None and os.path.lexists(repo.absolute(path))
                if there and not (self.layout and path in self.layout.entries):
                    return Told("", f"{quote(path)} is not in {self._where}", f"git add {quote(path)}")
        return None

    @cached_property
    def _required_names(self) -> list[str]:
        """What the requirements.txt beside the code, or at the top, asks for."""
        found = []
        for folder in dict.fromkeys((self._folder, b"")):
            place = os.path.join(self.layout.folder if self.layout else "", os.fsdecode(folder), REQUIREMENTS)
            if os.path.isfile(place):
                lines = Path(place).read_text(encoding="utf-8", errors="replace").splitlines()
                found += [match[0] for line in lines if (match := _NAME.match(line.strip()))]
        return found

    def _required(self, module: str) -> str | None:
        wanted = {_normal(module), _normal(_PACKAGES.get(module.lower(), module))}
        return next((name for name in self._required_names if _normal(name) in wanted), None)

    def _similar(self, top: str, similar: list[str]) -> str | None:
        entries = self.layout.entries if self.layout else frozenset()
        beside = {
            os.fsdecode(path[len(self._folder) :]).partition("/")[0].removesuffix(".py")
            for path in entries
            if path.startswith(self._folder) and path.endswith(b".py")
        }
        near = difflib.get_close_matches(top, sorted(beside), 1, 0.75)
        return next(iter([*near, *similar]), None)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
