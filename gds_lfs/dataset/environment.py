"""Virtual environments made from a dataset's `requirements.txt`, each built once and kept in the user's cache.

::

    <key>.json           the environment is complete: what it was made of, and the name of its folder.
                         Its mtime is when it was last asked for.
    <key>-<random>/      the environment, built where it stays (one that moves breaks); unfinished, or left by a
                         build that was killed, unless <key>.json names it
    <key>.lock           held by who builds it

The key is a hash of all that decides what an environment holds: the content of the requirements file and of what it
includes, the package that is added, the Python (version and implementation), the platform, and our version. Any change
makes another one. Builders of one key wait for each other, and a build that fails or is killed leaves nothing that
counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from gds_lfs import __version__
from gds_lfs.dataset.install_failure import EnvironmentFailure
from gds_lfs.dataset.installer import Installer
from gds_lfs.dataset.interpreters import choose
from gds_lfs.dataset.requirements import read
from gds_lfs.lock import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from gds_lfs.dataset.interpreters import Interpreter
    from gds_lfs.dataset.requirements import Needed, Requirements

_FORMAT = "git-datasets environment 1"
_KEY_LENGTH = 20
_WAIT = 60.0
_PYTHONS = ("bin/python", "Scripts/python.exe")


class Environment(NamedTuple):
    """One that is complete."""

    key: str
    folder: Path
    python: str
    """`Python 3.11.7`."""
    requirements: list[str]
    """The lines that it was made from."""
    version: str
    """The version of ours that made it."""
    size: int
    made: float
    used: float


class Environments:
    """All environments below a folder of the user's cache. `uv` is the program that builds them; without it, pip."""

    def __init__(self, root: Path, uv: str | None = None) -> None:
        self._root = root
        self._uv = uv or shutil.which("uv")

    def prepare(
        self,
        requirements: Path,
        python: str,
        on_output: Callable[[bytes], None],
        *,
        wanted: tuple[int, int] | None = None,
        needed: Needed | None = None,
    ) -> str:
        """The interpreter of an environment that has what the file requires, which is built unless it is there.

        It is made with `python`, or with another of this machine where the code asks for the version `wanted`, or
        the `needed` package for one of its range; `needed` is added where the file does not name it. What a build
        prints goes to `on_output` as it comes. Raises EnvironmentFailure.
        """
        asked = read(requirements)
        interpreter = choose(python, wanted, needed, self._uv)
        added = None if needed is None or asked.names(needed.name) else needed
        key = _key(asked, requirements.parent, interpreter, added)
        found = self._ready(key)
        if found is not None:
            return found
        lock = FileLock(self._root / f"{key}.lock")
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            if not lock.wait(0):
                on_output(b"waiting for another process that builds this environment\n")
                while not lock.wait(_WAIT):
                    pass
            installer = Installer(self._uv, interpreter, requirements, on_output)
            return self._ready(key) or self._build(key, installer, asked, added)
        except OSError as error:
            raise EnvironmentFailure(
                "environment",
                f"the environment cannot be made in {self._root}: {error.strerror or error}",
                "see to that folder, or name another one in GIT_DATASETS_CACHE",
            ) from error
        finally:
            lock.release()

    def list(self) -> list[Environment]:
        """Those that are complete, the one that was used last first."""
        found = []
        for marker in self._root.glob("*.json"):
            noted = _noted(marker)
            if noted is None:
                continue
            folder = self._root / noted["folder"]
            found.append(
                Environment(
                    marker.stem,
                    folder,
                    noted["python"],
                    noted["requirements"],
                    noted["version"],
                    _size(folder),
                    noted["made"],
                    marker.stat().st_mtime,
                )
            )
        return sorted(found, key=lambda environment: environment.used, reverse=True)

    def prune(self, idle: float) -> Sequence[Environment]:
        """Remove those unused for `idle` seconds, those that can never be used again, and what killed builds left.

        One that is being built stays.
        """
        now = time.time()
        removed = []
        for environment in self.list():
            useless = environment.version != __version__ or _python(environment.folder) is None
            if (useless or now - environment.used >= idle) and self._remove(environment.key):
                removed.append(environment)
        self._sweep()
        for path in self._root.glob("*.lock"):
            lock = FileLock(path)
            if not path.with_suffix(".json").exists() and lock.take():
                lock.remove()
        return removed

    def _ready(self, key: str) -> str | None:
        """The interpreter of a complete environment, which counts as used from now on."""
        marker = self._root / f"{key}.json"
        noted = _noted(marker)
        python = None if noted is None else _python(self._root / noted["folder"])
        if python is not None:
            with suppress(OSError):  # a cache that is not ours to write
                os.utime(marker)
        return python

    def _build(self, key: str, installer: Installer, asked: Requirements, added: Needed | None) -> str:
        (self._root / f"{key}.json").unlink(missing_ok=True)  # of one whose Python is gone
        self._sweep(key)
        folder = self._root / f"{key}-{secrets.token_hex(4)}"
        try:
            installer.build(folder, added)
            python = _python(folder)
            if python is None:
                raise EnvironmentFailure(
                    "environment",
                    f"{installer.python} made an environment without an interpreter",
                    "choose another Python: git config datasets.python <path>",
                )
            lines = [line.text for line in asked.lines] + ([str(added)] if added else [])
            noted = {
                "folder": folder.name,
                "python": installer.python,
                "requirements": lines,
                "version": __version__,
                "made": time.time(),
            }
            unfinished = folder / "complete.json"
            unfinished.write_text(json.dumps(noted), encoding="utf-8")
            os.replace(unfinished, self._root / f"{key}.json")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return python

    def _remove(self, key: str) -> bool:
        """Remove a complete environment, unless somebody builds it."""
        lock = FileLock(self._root / f"{key}.lock")
        if not lock.wait(0):
            return False
        try:
            (self._root / f"{key}.json").unlink(missing_ok=True)
            self._sweep(key)
        finally:
            lock.release()
        return True

    def _sweep(self, held: str | None = None) -> None:
        """Remove folders that no marker names and nobody works on. The lock of the key `held` is ours."""
        for folder in self._root.glob("*-*/"):
            key = folder.name.partition("-")[0]
            lock = FileLock(self._root / f"{key}.lock")
            if key != held and not lock.wait(0):
                continue
            try:
                noted = _noted(self._root / f"{key}.json")
                if noted is None or noted["folder"] != folder.name:
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                lock.release()


def _key(asked: Requirements, root: Path, interpreter: Interpreter, added: Needed | None) -> str:
    digest = hashlib.sha256()
    version = ".".join(map(str, interpreter.version))
    named = [_FORMAT, __version__, interpreter.implementation, version, interpreter.platform, str(added or "")]
    for part in [*named, *(part for pair in _contents(asked, root) for part in pair)]:
        data = part if isinstance(part, bytes) else os.fsencode(part)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:_KEY_LENGTH]


def _contents(asked: Requirements, root: Path) -> Iterator[tuple[str, bytes]]:
    """The files that decide what is installed: the requirements', and those of packages that lie beside the code."""
    yield from sorted(asked.files.items())
    for place in asked.places:
        path = root / place
        for file in [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file()):
            yield os.path.relpath(file, root), hashlib.sha256(file.read_bytes()).digest()


def _noted(marker: Path) -> dict[str, Any] | None:
    """What a marker says; None when there is none that can be read."""
    try:
        noted: dict[str, Any] = json.loads(marker.read_bytes())
    except (OSError, ValueError):
        return None
    return noted if noted.keys() >= {"folder", "python", "requirements", "version", "made"} else None


def _python(folder: Path) -> str | None:
    """The environment's interpreter, if it is still there: it is a link to the Python that it was made with."""
    return next((str(folder / name) for name in _PYTHONS if os.access(folder / name, os.X_OK)), None)


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
