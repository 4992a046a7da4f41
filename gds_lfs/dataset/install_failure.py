"""Why an environment could not be made, in words of its own: what uv or pip printed, classified.

Kinds:

    missing_requirements   no requirements.txt, or one that it includes is not there
    requirement            a requirement that cannot be installed: unknown, ill-written, or its build fails
    conflict               two requirements of the user's that exclude each other
    loader_conflict        requirements that can be installed, but not beside the package that is needed here
    wrong_python           something needs another Python
    network                the package index could not be reached, or did not answer as one
    environment            the environment itself: a full disk, a Python that cannot make any, a killed installer
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gds_lfs.errors import DatasetError

_CHOOSE = "git config datasets.python <path>, or pythonVersion in leap.yaml"
_LONGEST_DETAIL = 30
_LONGEST_LINE = 300

_NETWORK = re.compile(
    r"error sending request|dns error|tcp connect error|Failed to fetch|NewConnectionError|NameResolutionError|"
    r"ConnectTimeoutError|ReadTimeoutError|Max retries exceeded|ProxyError|SSLError|certificate verify failed|"
    r"invalid peer certificate|operation timed out|Network is unreachable|Connection (?:refused|reset)|"
    r"Temporary failure in name resolution|HTTP status (?:client|server) error|HTTP error 5\d\d|\b5\d\d Server Error|"
    r"\b(?:401|403) Client Error|401 Unauthorized"
)
_NO_SPACE = re.compile(r"No space left on device|os error 28\b|Errno 28\b|not enough space on the disk")
_PYTHON_RANGE = re.compile(r"Python version \([^)]*\) does not satisfy Python(?P<range>\S+?),? and (?P<what>\S+)")
_PYTHON_TAG = re.compile(
    r"(?P<what>[\w.\[\]-]+(?:==\S+)?) has no wheels with a matching Python (?:version|ABI|implementation)"
)
_PIP_PYTHON = re.compile(r"Package '(?P<what>[^']+)' requires a different Python: \S+ not in '(?P<range>[^']+)'")
_PIP_IGNORED = re.compile(r"Ignored the following versions that require a different python version: (?P<versions>.*)")
_PIP_UNKNOWN = re.compile(
    r"Could not find a version that satisfies the requirement (?P<what>.+?) \(from versions: (?P<versions>[^)]*)\)"
)
_UV_UNKNOWN = re.compile(r"(?:Because |and )(?P<what>\S+) was not found in the (?:package registry|provided)")
_UV_NO_VERSION = re.compile(r"there (?:is|are) no versions? of (?P<what>[^\s,]+(?:,[<>=!~][^\s,]+)*)")
_UV_POSITION = re.compile(r"in `(?P<file>[^`]+)` at position (?P<position>\d+)")
_PIP_INVALID = re.compile(
    r"Invalid requirement: '?(?P<what>.*?)'?(?:: .*)? \(from line (?P<line>\d+) of (?P<file>[^)]+)\)"
)
_BUILD = re.compile(r"Failed to build(?: and download)? `?(?P<uv>[^`\s]+)`?|Failed building wheel for (?P<pip>\S+)")
_BUILDING = re.compile(r"(?:Building wheel for|Preparing metadata for) (?P<what>\S+)")
_EXCEPTION = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|NotFound): .+|^(?:\S+ )?fatal error: .+|^error: (?!Command ).+"
)
_PROGRESS = re.compile(
    r"\s*(?:Looking in |Collecting |Downloading |Using (?:cached|Python) |Processing |Requirement already|━)"
)
_UV_REQUIRE = re.compile(
    r"you require (?P<first>[^\s,]+(?:,[<>=!~][^\s,]+)*)(?: and (?P<second>[^\s,]+(?:,[<>=!~]\S+?)*))?(?=,? |,|\.)"
)
_PIP_REQUESTED = re.compile(r"The user requested (?:\(constraint\) )?(?P<what>.+)")
_PIP_DEPENDS = re.compile(r"(?P<what>\S+ \S+) depends on (?P<on>.+)")


class EnvironmentFailure(DatasetError):
    """There is no environment, and why: its `kind`, a `headline`, what to do (`advice`) and the installer's words."""

    def __init__(self, kind: str, headline: str, advice: str, detail: str = "") -> None:
        super().__init__(f"{headline}\n{advice}")
        self.kind = kind
        self.headline = headline
        self.advice = advice
        self.detail = detail


class Attempt(NamedTuple):
    """An installer that failed: what it printed, and for whom."""

    output: str
    python: str
    """`Python 3.11.7`."""
    requirements: str
    """The text of the requirements file."""
    file: str = "requirements.txt"


def explain(attempt: Attempt) -> EnvironmentFailure:
    """The failure that this output tells of."""
    text = _plain(attempt.output)
    flat = re.sub(r"\s+", " ", text)
    detail = _detail(text)
    for look in (_disk, _network, _invalid, _python, _conflict, _unknown, _build):
        found = look(attempt, text, flat)
        if found is not None:
            kind, headline, advice = found
            return EnvironmentFailure(kind, _cut(headline), advice, detail)
    return EnvironmentFailure(
        "requirement",
        _cut(f"{attempt.file} cannot be installed: {_last_error(text)}"),
        f"mend {attempt.file}; the installer's own words are below",
        detail,
    )


_Found = tuple[str, str, str]


def _disk(_attempt: Attempt, _text: str, flat: str) -> _Found | None:
    if _NO_SPACE.search(flat):
        return (
            "environment",
            "the disk is full: there is no room for the environment",
            "make room, or remove environments that are not used: git datasets venv prune",
        )
    return None


def _network(attempt: Attempt, text: str, flat: str) -> _Found | None:
    found = _NETWORK.search(flat)
    if found is None:
        return None
    unknown = _PIP_UNKNOWN.search(flat)
    if unknown is not None and unknown["versions"] != "none":
        return None  # it was reached after all
    lines = [line for line in text.splitlines() if _NETWORK.search(line)]
    said = re.sub(r"^(?:error|cause|Caused by|WARNING|ERROR): ", "", lines[0].strip()) if lines else found[0]
    return (
        "network",
        f"the package index cannot be reached: {said}",
        f"this is not a fault of {attempt.file}: see to the network, the proxy or the index's address, then try again",
    )


def _invalid(attempt: Attempt, _text: str, flat: str) -> _Found | None:
    pip = _PIP_INVALID.search(flat)
    if pip is not None:
        place, what = f"{pip['file']}:{pip['line']}", pip["what"]
    else:
        uv = _UV_POSITION.search(flat)
        if uv is None or "parse" not in flat:
            return None
        before = attempt.requirements.encode()[: int(uv["position"])].decode("utf-8", "replace")
        number = before.count("\n") + 1
        lines = attempt.requirements.splitlines()
        place, what = f"{uv['file']}:{number}", lines[number - 1].strip() if number <= len(lines) else ""
    return "requirement", f"{place}: {what}: this is not a requirement", "write one as in: numpy>=1.26,<3"


def _python(attempt: Attempt, _text: str, flat: str) -> _Found | None:
    found = _PYTHON_RANGE.search(flat) or _PIP_PYTHON.search(flat)
    if found is not None:
        what, needs = found["what"], f"Python {found['range']}"
    else:
        tag = _PYTHON_TAG.search(flat)
        ignored, unknown = _PIP_IGNORED.search(flat), _PIP_UNKNOWN.search(flat)
        if tag is not None:
            what, needs = tag["what"], "another Python"
        elif ignored is not None and unknown is not None and _was_ignored(unknown["what"], ignored["versions"]):
            what = unknown["what"]
            needs = f"Python {_ignored_range(what, ignored['versions'])}"
        else:
            return None
    return (
        "wrong_python",
        f"{what} needs {needs}, and this is {attempt.python}",
        f"in {attempt.file}, ask for a version of it that knows this Python, or choose another Python: {_CHOOSE}",
    )


def _conflict(attempt: Attempt, text: str, flat: str) -> _Found | None:
    if "conflicting dependencies" in flat:
        pair, why = _pip_pair(text)
    elif "requirements are unsatisfiable" in flat and not _UV_UNKNOWN.search(flat) and not _no_such_version(flat):
        pair, why = _uv_pair(flat)
    else:
        return None
    names = " and ".join(pair) if len(pair) > 1 else f"requirements of {attempt.file}"
    return (
        "conflict",
        f"{names} exclude each other" + (f": {why}" if "depends on" in why else ""),
        f"loosen one of them in {attempt.file}",
    )


def _unknown(attempt: Attempt, _text: str, flat: str) -> _Found | None:
    pip, uv = _PIP_UNKNOWN.search(flat), _UV_UNKNOWN.search(flat)
    version = _no_such_version(flat)
    where = f"look for a typo in {attempt.file}"
    if (pip is not None and pip["versions"] == "none") or uv is not None:
        what = pip["what"] if pip is not None else uv["what"] if uv is not None else ""
        more = "; for an index of your own, uv reads UV_INDEX, not pip's config" if uv is not None else ""
        return "requirement", f"{what}: the package index has no such package", where + more
    if pip is not None or version is not None:
        what = pip["what"] if pip is not None else str(version)
        newest = f" (the newest is {pip['versions'].split(', ')[-1]})" if pip is not None else ""
        return "requirement", f"{what}: there is no such version{newest}", where
    return None


def _build(attempt: Attempt, text: str, _flat: str) -> _Found | None:
    found = _BUILD.search(text)
    if found is None and "subprocess-exited-with-error" not in text:
        return None
    building = _BUILDING.search(text)
    what = (found["uv"] or found["pip"]) if found else building["what"] if building else "a requirement"
    errors = [line.strip() for line in text.splitlines() if _EXCEPTION.match(line.strip())]
    told = [line for line in errors if "subprocess-exited" not in line and "Failed to build" not in line]
    why = f": {told[-1]}" if told else ""
    return (
        "requirement",
        f"{what} has no wheel for {attempt.python} here, and building it failed{why}",
        f"ask for a version that comes as a wheel in {attempt.file}, or install what its build needs",
    )


def _pip_pair(text: str) -> tuple[list[str], str]:
    """The two that conflict, and pip's lines of why."""
    reasons = text.partition("The conflict is caused by:")[2].strip("\n").partition("\n\n")[0]
    lines = [line.strip() for line in reasons.splitlines() if line.strip()]
    pair: list[str] = []
    for line in lines:
        found = _PIP_REQUESTED.fullmatch(line) or _PIP_DEPENDS.fullmatch(line)
        if found is not None and found["what"] not in pair:
            pair.append(found["what"])
    return pair[:2], "; ".join(lines[:2])


def _uv_pair(flat: str) -> tuple[list[str], str]:
    start = flat.find("Because ")
    reasoning = flat[start:].partition(" hint:")[0] if start >= 0 else flat
    pair: list[str] = []
    for found in _UV_REQUIRE.finditer(re.sub(r"we can conclude that you require \S+", "", reasoning)):
        pair += [what for what in (found["first"], found["second"]) if what and what not in pair]
    why = re.sub(r",? we can conclude that your requirements are unsatisfiable\..*", "", reasoning)
    return [pair[0], pair[-1]] if len(pair) > 1 else pair, why


def _no_such_version(flat: str) -> str | None:
    """The requirement that no version answers, where that alone is the reason."""
    found = _UV_NO_VERSION.search(flat)
    return found["what"] if found is not None and f"you require {found['what']}" in flat else None


def _was_ignored(requirement: str, ignored: str) -> bool:
    version = requirement.partition("==")[2]
    return f"{version} Requires-Python" in ignored if version else True


def _ignored_range(requirement: str, ignored: str) -> str:
    version = requirement.partition("==")[2]
    ranges = {
        entry.partition(" Requires-Python ")[0]: entry.partition(" Requires-Python ")[2]
        for entry in ignored.split("; ")
    }
    return ranges.get(version) or next(reversed(ranges.values()), "of another version")


def _plain(output: str) -> str:
    """The output without colours, frames and redrawn lines."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    lines = [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(re.sub(r"^\s*[×╰├│─▶>]+\s?(?:─▶\s)?", lambda m: " " * len(m[0]), line).rstrip() for line in lines)


def _detail(text: str) -> str:
    """The installer's last words that are not about progress."""
    lines = [line for line in text.splitlines() if line.strip() and not _PROGRESS.match(line)]
    return "\n".join(line[:_LONGEST_LINE] for line in lines[-_LONGEST_DETAIL:])


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"error: |ERROR: |cause: |Caused by: ", line)]
    found = (errors or lines or ["the installer said nothing"])[0 if errors and errors[0].startswith("error") else -1]
    return re.sub(r"^(?:error|ERROR): ", "", found)


def _cut(line: str) -> str:
    return line if len(line) <= 2 * _LONGEST_LINE else f"{line[: 2 * _LONGEST_LINE - 3]}..."
