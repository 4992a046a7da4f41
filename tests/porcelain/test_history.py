"""What is read from a fast-export stream, and what a stream becomes, without git."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import Any

import pytest

from gds_lfs.content.pointer import Pointer
from gds_lfs.git import attributes
from gds_lfs.git.repo import Entry
from gds_lfs.porcelain.history import Change, Commit, History, commits


def sha(name: str) -> bytes:
    return hashlib.sha1(name.encode()).hexdigest().encode()


def commit(mark: int, *lines: str, message: str = "words\n", parent: int = 0) -> str:
    known = f"mark :{mark}\noriginal-oid {sha(f'commit {mark}').decode()}\n"
    head = f"author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\ndata {len(message)}\n{message}"
    start = f"from :{parent}\n" if parent else ""
    return f"commit refs/heads/main\n{known}{head}{start}{''.join(line + chr(10) for line in lines)}\n"


def modify(name: str, path: str, mode: str = "100644") -> str:
    return f"M {mode} {sha(name).decode()} {path}"


STREAM = (
    "feature done\nreset refs/heads/main\n"
    + commit(1, modify("p", "a.bin"), modify("other", "b.bin"), modify("p", "link", "120000"))
    + commit(
        2, modify("tracks", ".gitattributes"), modify("p", '"n\\nl.bin"'), message="\nM 100644 x\nmark :9\n", parent=1
    )
    + commit(3, "D a.bin", modify("q", "sub/a.bin", "100755"), message="no end", parent=2)
    + commit(4, "D .gitattributes", message="", parent=3)
    + "tag v1\nfrom :2\noriginal-oid 00\ntagger A <a@b> 1 +0000\ndata 2\nt\n\ndone\n"
)
TREES = {
    2: [("100644", "p", b"a.bin"), ("100644", "p", b"n\nl.bin"), ("120000", "p", b"link")],
    4: [("100644", "p", b"n\nl.bin"), ("100755", "q", b"sub/a.bin"), ("100644", "other", b"b.bin")],
}


class Repo:
    """The trees of the stream's commits."""

    def tree(self, rev: str, paths: list[bytes] | None = None) -> Iterator[Entry]:
        (entries,) = [entries for mark, entries in TREES.items() if sha(f"commit {mark}").decode() == rev]
        for mode, name, path in entries:
            if paths is None or path in paths:
                yield Entry(int(mode, 8), sha(name), 0, path)


def test_commits_are_read_and_messages_are_not() -> None:
    in_first = [Change(sha("p"), b"a.bin"), Change(sha("other"), b"b.bin"), Change(b"", b"link")]
    in_second = [Change(sha("tracks"), b".gitattributes"), Change(sha("p"), b"n\nl.bin")]
    in_third = [Change(b"", b"a.bin"), Change(sha("q"), b"sub/a.bin")]
    assert list(commits(io.BytesIO(STREAM.encode()))) == [
        Commit(sha("commit 1"), b":1", b"", in_first),
        Commit(sha("commit 2"), b":2", b":1", in_second),
        Commit(sha("commit 3"), b":3", b":2", in_third),
        Commit(sha("commit 4"), b":4", b":3", [Change(b"", b".gitattributes")]),
    ]


def test_pointers_change_where_the_attributes_of_their_commit_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[bytes]]] = []

    def check(repo: Repo, paths: set[bytes], source: str, *, name: str) -> dict[bytes, bool]:
        asked.append((source, sorted(paths)))
        return {path: source == sha("commit 2").decode() and path.endswith(b".bin") for path in paths}

    monkeypatch.setattr(attributes, "check", check)
    pointers = {sha(name): Pointer(hashlib.sha256(name.encode()).digest(), 1) for name in "pq"}
    repo: Any = Repo()
    history = History(repo, io.BytesIO(STREAM.encode()), pointers, "lfs")
    assert asked == [
        (sha("commit 1").decode(), [b"a.bin", b"n\nl.bin", b"sub/a.bin"]),  # commit 4 has the same attributes: none
        (sha("commit 2").decode(), [b"a.bin", b"n\nl.bin", b"sub/a.bin"]),
    ]
    assert history.commits == 4
    assert set(history.pointers) == {sha("p"), sha("q")}
    assert history.attribute_files == {sha("tracks")}
    written = io.BytesIO()
    new = {sha("p"): b"1" * 40, sha("q"): b"2" * 40}
    history.write(io.BytesIO(STREAM.encode()), written, new, {sha("tracks"): b"3" * 40})
    lines = written.getvalue().splitlines()
    assert [line for line in lines if is_file(line)] == [
        b"M 100644 %s a.bin" % sha("p"),
        b"M 100644 %s b.bin" % sha("other"),
        b"M 120000 %s link" % sha("p"),
        b"M 100644 %s .gitattributes" % (b"3" * 40),
        b'M 100644 %s "n\\nl.bin"' % (b"1" * 40),
        b'M 100644 %s "a.bin"' % (b"1" * 40),  # untouched by this commit, and a pointer since
        b'M 100644 %s "n\\nl.bin"' % (b"1" * 40),
        b"M 100755 %s sub/a.bin" % (b"2" * 40),
        b'M 100644 %s "n\\nl.bin"' % sha("p"),  # untouched, and none any more
        b'M 100755 %s "sub/a.bin"' % sha("q"),
    ]
    assert [line for line in lines if not is_file(line)] == [
        line for line in STREAM.encode().splitlines() if not is_file(line)
    ]


def is_file(line: bytes) -> bool:
    return line.startswith(b"M ") and b" x" not in line
