from __future__ import annotations

import pytest

from gds_lfs.errors import GitError
from gds_lfs.git.index import write_blobs
from gds_lfs.git.repo import Repo

ABSENT = b"1" * 40


@pytest.fixture
def repo(top):
    return Repo.discover(top)


def store(repo: Repo, *contents: bytes) -> list[bytes]:
    return write_blobs(repo, contents)


def test_blobs_come_in_order_without_the_absent(repo):
    large = bytes(range(256)) * 4000
    first, second, third = store(repo, b"one\n", large, b"")
    assert list(repo.blobs([second, ABSENT, first, third])) == [(second, large), (first, b"one\n"), (third, b"")]


def test_blobs_leave_out_other_objects(repo):
    tree = repo.run("mktree", input=b"").strip()
    assert list(repo.blobs([tree])) == []
    assert list(repo.small_blobs([tree])) == []


def test_small_blobs(repo):
    small, edge, big = store(repo, b"s", b"e" * 1024, b"b" * 1025)
    assert list(repo.small_blobs([big, edge, ABSENT, small])) == [(edge, b"e" * 1024), (small, b"s")]
    assert list(repo.small_blobs([])) == []


def test_a_reader_that_stops_early_leaves_no_process(repo):
    shas = store(repo, *(b"%d" % number * 500 for number in range(2000)))
    reader = repo.blobs(shas)
    assert next(reader)[0] == shas[0]
    reader.close()
    assert [sha for sha, _ in repo.small_blobs(shas[:3], 5000)] == shas[:3]


def test_write_blobs_few_and_many(repo, git):
    for count in (1, 99, 250):
        contents = [b"%d of %d" % (number, count) for number in range(count)] + [b"same", b"same"]
        shas = write_blobs(repo, contents)
        assert dict(repo.blobs(shas)) == dict(zip(shas, contents, strict=True))
    expected = git("hash-object", "--stdin", data=b"same").strip().encode()
    assert shas[-1] == shas[-2] == expected
    git("fsck", "--strict")


def test_writing_what_is_there_writes_nothing(repo, top):
    contents = [b"%d" % number for number in range(300)]
    write_blobs(repo, contents)
    before = sorted((top / ".git" / "objects").rglob("*"))
    write_blobs(repo, contents)
    assert sorted((top / ".git" / "objects").rglob("*")) == before


def test_write_blobs_of_every_size(repo):
    contents = [bytes([size & 255]) * size for size in (0, 1, 15, 16, 17, 511, 512, 513, 2047, 2048, 70000)]
    shas = write_blobs(repo, contents)
    assert [content for _, content in repo.blobs(shas)] == contents


def test_write_blobs_with_sha256(tmp_path, git):
    git("init", "-q", "--object-format=sha256", "s", cwd=tmp_path)
    repo = Repo.discover(tmp_path / "s")
    for count in (2, 150):
        shas = write_blobs(repo, [b"%d.%d" % (count, number) for number in range(count)])
        assert {len(sha) for sha in shas} == {64}
        assert len(list(repo.blobs(shas))) == count


def commit(top, git, **files: str) -> str:
    for name, content in files.items():
        (top / name).write_text(content)
    git("add", ".")
    git("commit", "-q", "-m", "x")
    return git("rev-parse", "HEAD").strip()


def test_reachable_blobs(repo, top, git):
    first = commit(top, git, a="1", b="2")
    commit(top, git, b="3")
    git("branch", "other", first)
    every = {path: set() for path in (b"a", b"b")}
    for sha, path in repo.reachable_blobs(["--all"]):
        every[path].add(sha)
    assert {path: len(shas) for path, shas in every.items()} == {b"a": 1, b"b": 2}
    assert [path for _, path in repo.reachable_blobs(["HEAD"], [first])] == [b"b"]
    assert [path for _, path in repo.reachable_blobs(["HEAD"], ["--branches=oth*"])] == [b"b"]
    assert [path for _, path in repo.reachable_blobs(["HEAD"], [first, ABSENT.decode()])] == [b"b"]
    assert list(repo.reachable_blobs(["HEAD"], ["HEAD"])) == []


def test_an_unknown_revision_is_an_error(repo, top, git):
    commit(top, git, a="1")
    with pytest.raises(GitError, match="git rev-list"):
        list(repo.reachable_blobs(["nope"]))


def test_a_partial_clone_may_hold_any_path(repo, top, git, tmp_path):
    for name in ("a\r\rb", "c \r d"):
        (top / name).mkdir()
        (top / name / "file").write_text(name)
    commit(top, git, a="1")
    git("tag", "-a", "v1", "-m", "v1")
    git("config", "uploadpack.allowFilter", "true")
    git("clone", "-q", "--filter=blob:none", "--no-checkout", top.as_uri(), "p", cwd=tmp_path)
    clone = Repo.discover(tmp_path / "p")
    tag = git("rev-parse", "v1").strip().encode()
    [here] = write_blobs(clone, [b"local"])
    assert list(clone.small_blobs([tag, here])) == [(here, b"local")]


def test_a_partial_clone_fetches_nothing(repo, top, git, tmp_path):
    commit(top, git, a="1", b="2")
    git("config", "uploadpack.allowFilter", "true")
    git("clone", "-q", "--filter=blob:none", "--no-checkout", top.as_uri(), "p", cwd=tmp_path)
    clone = Repo.discover(tmp_path / "p")
    shas = {entry.path: entry.sha for entry in clone.tree("HEAD")}
    [here] = write_blobs(clone, [b"local"])
    top.rename(tmp_path / "gone")  # a fetch would fail from now on
    assert list(clone.small_blobs([shas[b"a"], here, shas[b"b"]])) == [(here, b"local")]
    assert list(clone.blobs([shas[b"a"], here])) == [(here, b"local")]
    assert {path for _, path in clone.reachable_blobs(["HEAD"])} <= {b"a", b"b"}
    assert write_blobs(clone, [b"1"]) == [shas[b"a"]]
