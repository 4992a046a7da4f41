"""The merge driver of tracked files: a whole version or a conflict, never lines (gitattributes(5), "merge").

git hands over the pointers of ancestor, ours and theirs. Where only one side changed, that side is the answer; where
both did, ours stays in the work tree, the path stays unmerged, and the user is told how to choose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.git.paths import quote

if TYPE_CHECKING:
    from pathlib import Path

    from gds_lfs.porcelain.messages import Messages


def merge(messages: Messages, ancestor: Path, ours: Path, theirs: Path, path: bytes) -> bool:
    """Leave the answer in `ours`; False for a conflict."""
    base, left, right = (file.read_bytes() for file in (ancestor, ours, theirs))
    if right in (base, left):
        return True
    if left == base:
        ours.write_bytes(right)
        return True
    name = quote(path)
    messages.warn(
        f"{name} changed on both sides, and whole files cannot be merged. Take one of them:\n"
        f"  git checkout --ours -- {name}     or     git checkout --theirs -- {name}\nthen git add {name}"
    )
    return False
