"""The text of a hook: a shell script that runs the hook that was there before, then ours.

    #!/bin/sh
    # git-datasets-hook 1 sha256:<hash of all other lines>
    ...

The marker tells a text of ours from somebody else's, and with its hash one that was edited. The hook from
before keeps its exit code. Where our program cannot be started, pre-commit and pre-push fail and say so,
since they guard data; the others warn, since what they report has happened already.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex

NAMES = ("pre-commit", "pre-merge-commit", "post-commit", "pre-push", "post-checkout", "post-merge")
BEFORE_SUFFIX = ".before-datasets"
FRAMEWORK = b"pre-commit.com"  # in every hook that pre-commit, the framework, writes
_MARKER = re.compile(rb"^# git-datasets-hook \d+ sha256:([0-9a-f]{64})\r?\n", re.MULTILINE)

# pre-commit (the framework) calls the hook it replaced. When that is ours and the one before ours is the
# framework's again, calling it would go round in a circle.
_TEMPLATE = """\
#!/bin/sh
# `git datasets install` wrote this, `git datasets uninstall` takes it away. What was here before runs first.
before="${{0%/*}}/{name}{suffix}"
if [ -n "$PRE_COMMIT_RUNNING_LEGACY" ] && grep -q 'pre-commit\\.com' "$before" 2>/dev/null; then
  before=
fi
{body}"""
_EXPLAIN = """\
  echo "git datasets: cannot start "{quoted}", which \\`git datasets install\\` recorded here." >&2
  echo "git datasets: run \\`git datasets install\\` again{otherwise}." >&2
"""
_GUARD = """\
if [ -x "$before" ]; then
  "$before" "$@" || exit $?
fi
{command} "$@"
code=$?
if [ "$code" -eq 126 ] || [ "$code" -eq 127 ]; then
{explain}fi
exit "$code"
"""
_GUARD_WITH_INPUT = """\
if [ -x "$before" ]; then
  refs=$(cat)
  if [ -n "$refs" ]; then
    printf '%s\\n' "$refs" | "$before" "$@" || exit $?
    printf '%s\\n' "$refs" | {command} "$@"
  else
    "$before" "$@" </dev/null || exit $?
    {command} "$@" </dev/null
  fi
else
  {command} "$@"
fi
code=$?
if [ "$code" -eq 126 ] || [ "$code" -eq 127 ]; then
{explain}fi
exit "$code"
"""
_REPORT = """\
result=0
if [ -x "$before" ]; then
  "$before" "$@"
  result=$?
fi
{command} "$@"
code=$?
if [ "$code" -eq 126 ] || [ "$code" -eq 127 ]; then
{explain}fi
exit "$result"
"""


def render(name: str, program: list[str]) -> bytes:
    """The script for one hook; the same for the same program."""
    command = f"{_words(program)} hook {name}"
    otherwise = "" if name.startswith("post-") else f", or delete {name} from the hooks folder"
    explain = _EXPLAIN.format(quoted=shlex.quote(_word(program[0])), otherwise=otherwise)
    template = _REPORT if name.startswith("post-") else _GUARD_WITH_INPUT if name == "pre-push" else _GUARD
    body = template.format(command=command, explain=explain)
    text = os.fsencode(_TEMPLATE.format(name=name, suffix=BEFORE_SUFFIX, body=body))
    first, rest = text.split(b"\n", 1)
    digest = hashlib.sha256(text).hexdigest().encode()
    return first + b"\n# git-datasets-hook 1 sha256:" + digest + b"\n" + rest


def is_ours(text: bytes) -> bool:
    """Whether we wrote a hook of this text, in whatever version, edited since or not."""
    return _MARKER.search(text) is not None


def is_edited(text: bytes) -> bool:
    """Whether a text of ours was changed by someone."""
    found = _MARKER.search(text)
    return found is not None and hashlib.sha256(_MARKER.sub(b"", text, count=1)).hexdigest().encode() != found[1]


def calls_us(name: str, text: bytes) -> bool:
    """Whether a foreign hook has a line that starts our hook, as after pasting `line`."""
    return (
        re.search(rb"^[^#\n]*(?:datasets|gds_lfs)\S* hook " + re.escape(name.encode()) + rb"\b", text, re.MULTILINE)
        is not None
    )


def line(name: str, program: list[str]) -> str:
    """The line to put into a hook that someone else owns."""
    return f'{_words(program)} hook {name} "$@"' + (" || true" if name.startswith("post-") else " || exit $?")


def _words(program: list[str]) -> str:
    return " ".join(shlex.quote(_word(word)) for word in program)


def _word(word: str) -> str:
    return word.replace(os.sep, "/")
