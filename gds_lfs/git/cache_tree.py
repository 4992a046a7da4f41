"""The index extension TREE: the ids of trees that git need not compute again.

For each folder, parents first: its name, a zero byte, how many entries of the index it covers (-1 where the
id is not known), a space, how many folders in it follow, a newline, and unless the count is -1 the id of its
tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def invalidate(data: bytes, paths: Iterable[bytes], id_size: int) -> bytes:
    """The extension with every folder above one of `paths` marked as not known.

    Raises ValueError for data in another format.
    """
    changed: set[bytes] = set()
    for path in paths:
        folder = path.rpartition(b"/")[0]
        while folder not in changed:
            changed.add(folder)
            folder = folder.rpartition(b"/")[0]
    out: list[bytes] = []
    parents: list[tuple[bytes, int]] = []  # the folders we are in, and how many of theirs are still to come
    position = 0
    while position < len(data):
        zero = data.index(b"\0", position)
        line_end = data.index(b"\n", zero)
        name = data[position:zero]
        count, folders = map(int, data[zero + 1 : line_end].split(b" "))
        position = line_end + 1
        tree = data[position : position + id_size] if count >= 0 else b""
        position += len(tree)
        folder = parents[-1][0] + name if parents else name
        if folder in changed:
            count, tree = -1, b""
        out.append(b"%s\0%d %d\n%s" % (name, count, folders, tree))
        parents.append((folder + b"/" if folder else b"", folders))
        while parents and parents[-1][1] == 0:
            parents.pop()
            if parents:
                parents[-1] = (parents[-1][0], parents[-1][1] - 1)
    return b"".join(out)
