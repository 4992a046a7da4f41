"""Settings: git's config, the tracked file .datasetsconfig, and the environment.

Only this module and the command line read environment variables:

    GIT_DATASETS_SKIP_SMUDGE  true: checkouts leave pointers in the work tree
    GIT_DATASETS_PROGRESS     true or false: show progress, whatever the terminal looks like
    GIT_DATASETS_CACHE        folder for what can be had again, in place of the user's cache folder
    AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS
                              the S3 server that the user names for all programs, as boto3 reads them
    VIRTUAL_ENV               the active virtual environment, whose Python runs index.py

`.datasetsconfig` has the syntax of git's config files and travels with the repository, so it is anybody's
text. It holds these keys, none of which names a program or a secret; all others are ignored with a warning:

    datasets.remote           URL or folder of the dataset remote
    datasets.endpoint         the server of an s3:// URL, where it is not AWS (used once the user approves it)
    datasets.region           its region
    dataset.<file>.sqlfile    database, beside it, of the dataset that this Python file declares
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError
from gds_lfs.git.command import failure, git, reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gds_lfs.git.repo import Repo

DATASETS_CONFIG = ".datasetsconfig"
_PLACE = ("datasets.remote", "datasets.endpoint", "datasets.region")
_TRUE = ("true", "yes", "on")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOTHING_TO_UNSET = 5


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """Our environment with `changes`."""
    return {**os.environ, **changes}


def absolute_git_paths(**paths: Path | None) -> dict[str, str]:
    """Those of `paths` whose variable is set, as absolute values: git reads relative ones from its own folder."""
    return {name: os.fspath(path) for name, path in paths.items() if path is not None and os.environ.get(name)}


def cache_dir() -> Path:
    """The folder for what can be had again: remote indexes, downloaded packs, environments."""
    chosen = os.environ.get("GIT_DATASETS_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("git-datasets", appauthor=False))


class Settings:
    """git's config as one command sees it, read once; later values of a key win, as in git."""

    def __init__(
        self,
        values: Iterable[tuple[str, str, str | None]],
        variables: Mapping[str, str],
        repo: Repo | None = None,
    ) -> None:
        self._values = _by_key(values)
        self._repo = repo
        self.skip_smudge = _boolean(variables.get("GIT_DATASETS_SKIP_SMUDGE", ""))
        ignored = _boolean(variables.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", ""))
        server = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL")
        self.s3_endpoint = None if ignored else server or None
        environment = variables.get("VIRTUAL_ENV", "")
        self.virtual_env = Path(environment) if environment else None

    @classmethod
    def read(cls, repo: Repo | None = None) -> Settings:
        """Everything that `git config` finds: for a repository, or the user's own where `repo` is None.

        Raises ConfigError with git's words when a config file is broken.
        """
        return cls(_listed(repo), os.environ, repo)

    @property
    def folder(self) -> Path:
        """Where relative paths in the repository's config start."""
        return self._repo.folder if self._repo else Path.cwd()

    def get(self, key: str) -> str | None:
        """The value in effect; None when there is none, the empty string for a key without "="."""
        found = self._values.get(_canonical(key))
        return None if not found else found[-1][1] or ""

    def get_all(self, key: str) -> list[str]:
        """All values, the one in effect last."""
        return [value or "" for _, value in self._values.get(_canonical(key), [])]

    def get_bool(self, key: str, *, default: bool = False) -> bool:
        """A boolean in any of git's spellings; a key without "=" is true."""
        found = self._values.get(_canonical(key))
        if not found:
            return default
        value = found[-1][1]
        return value is None or _boolean(value)

    def get_number(self, key: str) -> int | None:
        """A number with git's own suffixes: k, m and g. Raises ConfigError for anything else."""
        value = self.get(key)
        if value is None:
            return None
        found = re.fullmatch(r"\s*(\d+)\s*([kmg]?)\s*", value, re.IGNORECASE)
        if found is None:
            raise ConfigError(f"{key} is {value!r}, which is no number (such as 512m or 4g): git config {key} NUMBER")
        return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2].lower()]

    def subsections(self, section: str, name: str) -> dict[str, list[str]]:
        """The values of `<section>.<subsection>.<name>`, by the subsection."""
        found = {}
        for key, values in self._values.items():
            middle = key.removeprefix(f"{section}.").removesuffix(f".{name}")
            if key == f"{section}.{middle}.{name}":
                found[middle] = [value or "" for _, value in values]
        return found

    def scope(self, key: str) -> str | None:
        """Where the value in effect stands: system, global, local, worktree or command."""
        found = self._values.get(_canonical(key))
        return found[-1][0] if found else None


@dataclass
class DatasetsConfig:
    """What .datasetsconfig says: the remote with its server and region, each dataset's database by its Python file,
    and what was ignored.
    """

    remote: str | None = None
    sql_files: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    endpoint: str | None = None
    region: str | None = None


def read_datasetsconfig(repo: Repo, source: str | None = None) -> DatasetsConfig:
    """Read .datasetsconfig from the work tree (None), the index (":") or a tree-ish.

    An absent file is an empty one. Raises ConfigError when it is not in git's config syntax.
    """
    if source is None:
        path = repo.work_tree / DATASETS_CONFIG
        if not path.is_file():
            return DatasetsConfig()
        place = ["-f", os.fspath(path)]
    else:
        blob = f":{DATASETS_CONFIG}" if source == ":" else f"{source}:{DATASETS_CONFIG}"
        if not repo.run("rev-parse", "--quiet", "--verify", "--end-of-options", blob, check=False):
            return DatasetsConfig()
        place = ["--blob", blob]
    result = git(["config", "-z", "--list", "--no-includes", *place], cwd=repo.folder, env=repo.environment())
    if result.returncode != 0:
        raise ConfigError(f"{DATASETS_CONFIG}: {reason(result.stderr)}; it must have the syntax of .git/config")
    return parse_datasetsconfig(_pairs(result.stdout.split(b"\0")[:-1]))


def parse_datasetsconfig(pairs: Iterable[tuple[str, str | None]]) -> DatasetsConfig:
    """Keep the allowed keys that have usable values, and a warning for each of the others."""
    found = DatasetsConfig()
    for key, value in pairs:
        problem = _problem(key, value or "")
        if problem:
            found.warnings.append(f"{DATASETS_CONFIG}: {_printable(key)} is ignored: {problem}")
        elif key in _PLACE:
            setattr(found, key.removeprefix("datasets."), value)
        else:
            found.sql_files[_dataset_file(key)] = value or ""
    return found


def write_datasetsconfig(repo: Repo, key: str, value: str | None) -> None:
    """Set one allowed key in the work tree's .datasetsconfig, or remove it (None).

    Raises ConfigError for another key or a value that a reader would ignore, GitError when git cannot write it.
    """
    problem = _problem(_canonical(key), "" if value is None else value, unset=value is None)
    if problem:
        raise ConfigError(f"{DATASETS_CONFIG}: {_printable(key)} cannot be set: {problem}")
    path = repo.work_tree / DATASETS_CONFIG
    if value is None and not path.is_file():
        return
    change = ["--unset-all", key] if value is None else ["--replace-all", key, value]
    command = ["config", "-f", os.fspath(path), *change]
    result = git(command, cwd=repo.folder, env=repo.environment())
    if result.returncode not in (0, _NOTHING_TO_UNSET if value is None else 0):
        raise failure(command, result.returncode, result.stderr)


def _listed(repo: Repo | None) -> list[tuple[str, str, str | None]]:
    """Scope, key and value of everything in git's config. Raises ConfigError when a config file is broken."""
    command = ["config", "-z", "--list", "--show-scope", "--includes"]
    result = git(command, cwd=repo.folder if repo else None, env=repo.environment() if repo else None)
    if result.returncode != 0:
        raise ConfigError(f"git config: {reason(result.stderr)}")
    fields = result.stdout.split(b"\0")[:-1]
    return [(scope.decode(), *pair) for scope, pair in zip(fields[::2], _pairs(fields[1::2]), strict=True)]


def _by_key(values: Iterable[tuple[str, str, str | None]]) -> dict[str, list[tuple[str, str | None]]]:
    found: dict[str, list[tuple[str, str | None]]] = {}
    for scope, key, value in values:
        found.setdefault(key, []).append((scope, value))
    return found


def _pairs(fields: Iterable[bytes]) -> list[tuple[str, str | None]]:
    """Keys and values of `git config -z`: a newline between them, none at all for a key without "="."""
    found = []
    for text in map(os.fsdecode, fields):
        key, equals, value = text.partition("\n")
        found.append((key, value if equals else None))
    return found


def _canonical(key: str) -> str:
    """The key as git lists it: section and name in lower case, the part between them as it is."""
    section, _, rest = key.partition(".")
    middle, dot, name = rest.rpartition(".")
    return f"{section.lower()}.{middle}{dot}{name.lower()}"


def _boolean(value: str) -> bool:
    value = value.strip().lower()
    return value in _TRUE or (value.lstrip("+-").isdigit() and int(value) != 0)


def _problem(key: str, value: str, *, unset: bool = False) -> str | None:
    """Why a key of .datasetsconfig cannot be used; None when it can."""
    if key not in _PLACE and not re.fullmatch(r"dataset\..+\.sqlfile", key, re.DOTALL):
        return f"only {', '.join(_PLACE)} and dataset.<file>.sqlfile are read from {DATASETS_CONFIG}"
    if not value and not unset:
        return "it has no value"
    if _CONTROL.search(value):
        return "its value has control characters"
    if key not in _PLACE and not all(map(_is_inside, filter(None, (_dataset_file(key), value)))):
        return "it must name files inside the repository"
    return None


def _dataset_file(key: str) -> str:
    return key.removeprefix("dataset").removesuffix("sqlfile")[1:-1]


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    outside = path.startswith("/") or "\\" in path or ".." in parts
    return not outside and not any(part.lower().rstrip(". ") == ".git" for part in parts)


def _printable(text: str) -> str:
    return _CONTROL.sub("?", text).encode(errors="replace").decode()
