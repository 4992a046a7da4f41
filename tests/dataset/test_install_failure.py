# ruff: noqa: E501 - their own lines
"""What uv 0.5 and 0.13, and pip 23, really printed."""

from __future__ import annotations

import pytest

from gds_lfs.dataset.install_failure import Attempt, EnvironmentFailure, explain

UV_CONFLICT = """\
Using Python 3.11.7 environment at: /cache/venvs/x
error: No solution found when resolving dependencies
  cause: Because tensorflow==2.13.0 depends on numpy>=1.22,<=1.24.3 and you require tensorflow==2.13.0, we can conclude that you require numpy>=1.22,<=1.24.3.
         And because you require numpy==2.3.3, we can conclude that your requirements are unsatisfiable.
"""
UV_FRAMED = """\
  \x1b[31m×\x1b[0m No solution found when resolving dependencies:
\x1b[31m  ╰─▶ \x1b[0mBecause you require numpy==1.26.4 and numpy==1.24.0, we can conclude that
      your requirements are unsatisfiable.
"""
PIP_CONFLICT = """\
Looking in indexes: https://pypi.org/simple
Collecting tensorflow==2.13.0 (from -r requirements.txt (line 1))
  Downloading tensorflow-2.13.0-cp311-cp311-manylinux_2_17_x86_64.whl (524.2 MB)
     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 524.2/524.2 MB 52.1 MB/s eta 0:00:00
INFO: pip is looking at multiple versions of tensorflow to determine which version is compatible with other requirements.
ERROR: Cannot install -r requirements.txt (line 1) and numpy==2.3.3 because these package versions have conflicting dependencies.

The conflict is caused by:
    The user requested numpy==2.3.3
    tensorflow 2.13.0 depends on numpy<=1.24.3 and >=1.22

To fix this you could try to:
1. loosen the range of package versions you've specified
2. remove package versions to allow pip attempt to solve the dependency conflict

ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/
"""
UV_UNKNOWN = """\
error: No solution found when resolving dependencies
  cause: Because no-such-package was not found in the package registry and you require no-such-package, we can conclude that your requirements are unsatisfiable.
"""
PIP_UNKNOWN = """\
ERROR: Could not find a version that satisfies the requirement no-such-package (from versions: none)
ERROR: No matching distribution found for no-such-package
"""
UV_VERSION = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of six==99.0 and you require six==99.0, we can conclude that your requirements are unsatisfiable.
"""
PIP_VERSION = """\
ERROR: Could not find a version that satisfies the requirement six==99.0 (from versions: 1.15.0, 1.16.0, 1.17.0)
ERROR: No matching distribution found for six==99.0
"""
UV_PYTHON = """\
error: No solution found when resolving dependencies
  cause: Because the current Python version (3.10.13) does not satisfy Python>=3.12 and numpy==2.5.0 depends on Python>=3.12, we can conclude that numpy==2.5.0 cannot be used.
         And because you require numpy==2.5.0, we can conclude that your requirements are unsatisfiable.
"""
UV_TAG = """\
error: No solution found when resolving dependencies
  cause: Because tensorflow==2.4.0 has no wheels with a matching Python ABI tag (e.g., `cp311`) and you require tensorflow==2.4.0, we can conclude that your requirements are unsatisfiable.
"""
PIP_PYTHON = """\
ERROR: Ignored the following versions that require a different python version: 2.4.6 Requires-Python >=3.11; 2.5.0 Requires-Python >=3.12; 2.5.0rc1 Requires-Python >=3.12
ERROR: Could not find a version that satisfies the requirement numpy==2.5.0 (from versions: 1.3.0, 2.2.6)
ERROR: No matching distribution found for numpy==2.5.0
"""
PIP_OTHER_VERSIONS = """\
ERROR: Ignored the following versions that require a different python version: 2.4.6 Requires-Python >=3.11; 2.5.0 Requires-Python >=3.12
ERROR: Could not find a version that satisfies the requirement numpy==9.9 (from versions: 1.3.0, 2.2.6)
"""
PIP_LOCAL_PYTHON = "ERROR: Package 'thing' requires a different Python: 3.10.13 not in '>=3.12'\n"
UV_NETWORK = """\
error: Request failed after 3 retries in 10.7s
  cause: Failed to fetch: https://pypi.example/simple/six/
  cause: error sending request for url (https://pypi.example/simple/six/)
  cause: dns error
"""
PIP_NETWORK = """\
WARNING: Retrying (Retry(total=0, connect=None, read=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno 111] Connection refused')': /simple/six/
ERROR: Could not find a version that satisfies the requirement six (from versions: none)
ERROR: No matching distribution found for six
"""
UV_INVALID = """\
error: Couldn't parse requirement in `requirements.txt` at position 4
  cause: Expected one of `@`, `(`, `<`, `=`, `>`, `~`, `!`, `;`, found `b`
         foo bar
             ^
"""
PIP_INVALID = "ERROR: Invalid requirement: 'foo bar' (from line 2 of requirements.txt)\n"
UV_BUILD = """\
Resolved 1 package in 411ms
   Building thing==1.0
error: Failed to build `thing==1.0`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta:__legacy__.build_wheel` failed (exit status: 1)

         [stderr]
         Traceback (most recent call last):
           File "<string>", line 1, in <module>
         ModuleNotFoundError: No module named 'distutils'
"""
PIP_BUILD = """\
  Building wheel for thing (pyproject.toml): finished with status 'error'
  error: subprocess-exited-with-error

  × Building wheel for thing (pyproject.toml) did not run successfully.
  │ exit code: 1
  ╰─> [12 lines of output]
      src/thing.c:3:10: fatal error: zlib.h: No such file or directory
      [end of output]

  ERROR: Failed building wheel for thing
"""


def told(output: str) -> EnvironmentFailure:
    return explain(Attempt(output, "Python 3.11.7", "six\nfoo bar\n"))


@pytest.mark.parametrize(
    ("output", "kind", "headline"),
    [
        (UV_CONFLICT, "conflict", "tensorflow==2.13.0 and numpy==2.3.3 exclude each other: Because tensorflow==2.13.0"),
        (UV_FRAMED, "conflict", "numpy==1.26.4 and numpy==1.24.0 exclude each other"),
        (
            PIP_CONFLICT,
            "conflict",
            "numpy==2.3.3 and tensorflow 2.13.0 exclude each other: The user requested numpy==2.3.3; tensorflow 2.13.0 depends on numpy<=1.24.3 and >=1.22",
        ),
        (UV_UNKNOWN, "requirement", "no-such-package: the package index has no such package"),
        (PIP_UNKNOWN, "requirement", "no-such-package: the package index has no such package"),
        (UV_VERSION, "requirement", "six==99.0: there is no such version"),
        (PIP_VERSION, "requirement", "six==99.0: there is no such version (the newest is 1.17.0)"),
        (PIP_OTHER_VERSIONS, "requirement", "numpy==9.9: there is no such version"),
        (UV_PYTHON, "wrong_python", "numpy==2.5.0 needs Python >=3.12, and this is Python 3.11.7"),
        (PIP_PYTHON, "wrong_python", "numpy==2.5.0 needs Python >=3.12, and this is Python 3.11.7"),
        (PIP_LOCAL_PYTHON, "wrong_python", "thing needs Python >=3.12, and this is Python 3.11.7"),
        (UV_TAG, "wrong_python", "tensorflow==2.4.0 needs another Python"),
        (
            UV_NETWORK,
            "network",
            "the package index cannot be reached: Failed to fetch: https://pypi.example/simple/six/",
        ),
        (PIP_NETWORK, "network", "the package index cannot be reached: Retrying"),
        (UV_INVALID, "requirement", "requirements.txt:2: foo bar: this is not a requirement"),
        (PIP_INVALID, "requirement", "requirements.txt:2: foo bar: this is not a requirement"),
        (
            UV_BUILD,
            "requirement",
            "thing==1.0 has no wheel for Python 3.11.7 here, and building it failed: ModuleNotFoundError: No module named 'distutils'",
        ),
        (
            PIP_BUILD,
            "requirement",
            "thing has no wheel for Python 3.11.7 here, and building it failed: src/thing.c:3:10: fatal error: zlib.h",
        ),
        ("error: failed to write: No space left on device (os error 28)", "environment", "the disk is full"),
        ("something new\nERROR: it broke\n", "requirement", "requirements.txt cannot be installed: it broke"),
        ("", "requirement", "requirements.txt cannot be installed: the installer said nothing"),
    ],
)
def test_failures_are_classified(output: str, kind: str, headline: str) -> None:
    failure = told(output)
    assert (failure.kind, failure.headline[: len(headline)]) == (kind, headline)
    assert failure.advice
    assert "\n" not in failure.headline


def test_an_index_that_was_reached_in_the_end_is_no_network_failure() -> None:
    output = PIP_NETWORK.replace("(from versions: none)", "(from versions: 1.16.0)")
    assert told(output).kind == "requirement"


def test_the_detail_has_the_installers_words_without_its_progress() -> None:
    detail = told(PIP_CONFLICT).detail
    assert "tensorflow 2.13.0 depends on numpy<=1.24.3 and >=1.22" in detail
    assert "Downloading" not in detail
    assert "━" not in detail
