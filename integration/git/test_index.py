"""What IndexUpdate writes, as real git reads it."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from gds_lfs.errors import LockedError
from gds_lfs.git.index import IndexUpdate, UnsupportedIndexError, unchanged, update_with_git, write_blobs
from gds_lfs.git.repo import Entry, Repo

LONG = b"/".join([b"z" * 200] * 25)  # its length does not fit in an entry's flags
FAR = (b"d/" + b"a" * 128, b"d/b")  # what differs does not fit in one byte of version 4


@pytest.fixture
def repo(top):
    return Repo.discover(top)


def age(path, seconds=5):
    """Make a file's time old, as files have it that nobody is writing."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def write(top, path, content, seconds=5):
    place = top / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)
    age(place, seconds)
    return place.stat()


def stage(repo, top, files, seconds=5):
    """Write files and stage them, as `git datasets add` does."""
    with IndexUpdate(repo) as index:
        for path, content in files.items():
            stat = write(top, path, content, seconds)
            [sha] = write_blobs(repo, [content.encode()])
            index.set(os.fsencode(path), 0o100644, sha, stat)


def has_stat(top, git, path):
    """Whether the index has this file's size."""
    return f"size: {(top / path).stat().st_size}\t" in git("ls-files", "--debug", "--", path)


def test_a_new_index_is_clean_for_git(repo, top, git):
    stage(repo, top, {"a/b.txt": "one\n", "a.txt": "two\n", "é": "3"})
    assert git("status", "--porcelain", "-z") == "A  a.txt\0A  a/b.txt\0A  é\0"
    assert git("diff", "--name-only") == ""
    assert has_stat(top, git, "a.txt")
    git("fsck", "--strict")
    git("commit", "-q", "-m", "x")
    assert git("status", "--porcelain") == ""


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_index_versions(repo, top, git, version):
    stage(repo, top, {f"dir/{number:03}/file{number}": str(number) for number in range(50)})
    git("update-index", "--index-version", version)
    if version == "3":
        git("update-index", "--skip-worktree", "dir/001/file1")
    stage(repo, top, {"dir/007/file7": "changed", "dir/007/new": "new", "a": "first"})
    with IndexUpdate(repo) as index:
        index.set(b"dir/049/" + b"z" * 127, 0o100644, repo.run("rev-parse", ":a").strip())
        index.remove(b"dir/049/file49")
    paths = [entry.path for entry in repo.staged()]
    assert len(paths) == 52
    assert paths == sorted(paths)
    assert (top / ".git" / "index").read_bytes()[7] == int(version)
    assert git("diff", "--name-only", "--diff-filter=d") == ""
    assert ("S dir/001/file1" in git("ls-files", "-v")) == (version == "3")
    git("fsck", "--strict")


def test_commits_after_updates_have_the_right_trees(repo, top, git):
    """The cached trees that stay in the index must not bring back what was."""
    stage(repo, top, {f"{folder}/{name}": folder + name for folder in ("a", "a/b", "c") for name in "xyz"})
    git("commit", "-q", "-m", "x")
    git("read-tree", "HEAD")
    shutil.rmtree(top / "c")
    stage(repo, top, {"a/b/x": "changed", "d/e/f": "new", "c": "a file where a folder was"})
    with IndexUpdate(repo) as index:
        index.remove(b"a/y")
    fast = git("write-tree")
    (top / ".git" / "index2").unlink(missing_ok=True)
    plain = "".join(f"{entry.mode:o} {entry.sha.decode()}\t{os.fsdecode(entry.path)}\n" for entry in repo.staged())
    update = {"GIT_INDEX_FILE": str(top / ".git" / "index2")}
    repo.run("update-index", "--index-info", input=plain.encode(), env=update)
    assert repo.run("write-tree", env=update).decode() == fast
    git("fsck", "--cache", "--strict")


def test_the_cached_trees_of_other_folders_stay(repo, top, git):
    stage(repo, top, {f"{folder}/f": folder for folder in "abc"})
    git("commit", "-q", "-m", "x")
    stage(repo, top, {"a/f": "changed"})
    data = (top / ".git" / "index").read_bytes()
    trees = data[data.index(b"TREE") + 8 :]
    assert trees.startswith(b"\0-1 3\n")
    assert b"a\0-1 0\n" in trees
    assert b"b\0" + b"1 0\n" in trees


def test_a_file_and_a_folder_of_one_name(repo, top, git):
    stage(repo, top, {"a": "file", "b/x": "x", "b/y/z": "z", "b.txt": "t"})
    with IndexUpdate(repo) as index:
        [sha] = write_blobs(repo, [b"new"])
        index.set(b"a/inside/deep", 0o100644, sha)
        index.set(b"b", 0o100755, sha)
        index.set(b"c/d", 0o100644, sha)
        index.set(b"c", 0o100644, sha)
        index.set(b"e", 0o100644, sha)
        index.set(b"e/f", 0o100644, sha)
        index.set(b"g/h", 0o100644, sha)
        index.set(b"g", 0o100644, sha)
        index.set(b"g/h", 0o100644, sha)
    staged = [entry.path for entry in repo.staged()]
    assert staged == [b"a/inside/deep", b"b", b"b.txt", b"c", b"e/f", b"g/h"]
    git("write-tree")


def test_conflicts(repo, top, git):
    blob = git("hash-object", "-w", "--stdin", data=b"x").strip()
    lines = "".join(f"100644 {blob} {stage}\t{path}\n" for path in "fg" for stage in (1, 2, 3))
    git("update-index", "--index-info", data=lines.encode())
    with IndexUpdate(repo) as index:
        assert index.entry(b"f") is None
        index.set(b"f", 0o100644, blob.encode())
    assert [(entry.path, entry.stage) for entry in repo.staged()] == [(b"f", 0), (b"g", 1), (b"g", 2), (b"g", 3)]
    with IndexUpdate(repo) as index:
        index.remove(b"g")
        index.remove(b"absent")
    assert [entry.path for entry in repo.staged()] == [b"f"]


def test_entries_can_be_looked_up(repo, top):
    stage(repo, top, {"a/b": "1", "a/c/d": "2", "ab": "3"})
    with IndexUpdate(repo) as index:
        assert index.entry(b"nope") is None
        found = index.entry(b"a/b")
        assert found == Entry(0o100644, found.sha, 0, b"a/b")


def begin_second():
    """Wait for the next clock second, so that what follows happens within one."""
    time.sleep(1.02 - time.time() % 1)


def test_an_edit_in_the_same_second_is_seen(repo, top, git):
    """Files are written, read and edited within one second, size and time staying; the index comes a second
    later.
    """
    [sha] = write_blobs(repo, [b"old"])
    begin_second()
    with IndexUpdate(repo) as index:
        for number in range(10):
            path = top / f"f{number}"
            path.write_text("old")
            stat = path.stat()
            index.set(path.name.encode(), 0o100644, sha, stat)
            path.write_text("new")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        time.sleep(1.1)
    assert len(git("diff", "--name-only").split()) == 10


def test_an_edit_right_after_staging_is_seen(repo, top, git):
    path = top / "f"
    stage(repo, top, {"f": "old"}, seconds=0)
    path.write_text("new")
    assert git("diff", "--name-only") == "f\n"
    time.sleep(1.1)
    assert git("diff", "--name-only") == "f\n"


def test_entries_that_were_racy_stay_under_suspicion(repo, top, git):
    """git staged a file and it was edited in that second: only the index's time tells. A newer index must
    not hide it.
    """
    path = top / "f"
    begin_second()
    path.write_text("old")
    git("add", "f")
    stat = path.stat()
    path.write_text("new")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    time.sleep(1.1)
    stage(repo, top, {"other": "x"})
    assert git("diff", "--name-only") == "f\n"


def test_untouched_files_of_this_second_are_clean(repo, top, git):
    stage(repo, top, {"f": "x", "g": "y"}, seconds=0)
    assert git("diff", "--name-only") == ""
    git("commit", "-q", "-m", "x")
    assert git("status", "--porcelain") == ""


@pytest.mark.parametrize("since", ["before", "after"])
def test_many_files_of_this_second_keep_their_stat_data(repo, top, git, since):
    """Waiting the second out spares git a second look at each of them, and still sees an edit meanwhile."""
    [sha] = write_blobs(repo, [b"x"])
    begin_second()
    began = time.time()
    for number in range(1200):
        (top / f"f{number}").write_text("x")
    stats = {f"f{number}": (top / f"f{number}").stat() for number in range(1200)}
    with IndexUpdate(repo, since=began if since == "before" else None) as index:
        for path, stat in stats.items():
            index.set(path.encode(), 0o100644, sha, stat)
        time.sleep(0.03)
        (top / "f0").write_text("y")
    assert has_stat(top, git, "f1")
    assert git("diff", "--name-only") == "f0\n"


def test_coarse_times_are_not_trusted(repo, top, git):
    """A file system that keeps seconds only: an edit in that second changes nothing that can be seen."""
    [sha] = write_blobs(repo, [b"old"])
    begin_second()
    began = time.time()
    with IndexUpdate(repo, since=began) as index:
        (top / "f").write_text("old")
        os.utime(top / "f", (int(began), int(began)))
        index.set(b"f", 0o100644, sha, (top / "f").stat())
        time.sleep(1.1)
    assert not has_stat(top, git, "f")


def test_a_time_in_the_future_is_not_trusted(repo, top, git):
    [sha] = write_blobs(repo, [b"x"])
    with IndexUpdate(repo) as index:
        index.set(b"f", 0o100644, sha, write(top, "f", "x", seconds=-3600.123))
    assert not has_stat(top, git, "f")
    assert git("diff", "--name-only") == ""


def test_the_lock_is_gits(repo, top, git):
    stage(repo, top, {"f": "x"})
    lock = top / ".git" / "index.lock"
    lock.touch()
    with pytest.raises(LockedError, match=r"index\.lock exists"), IndexUpdate(repo):
        pass
    lock.unlink()
    before = (top / ".git" / "index").read_bytes()

    def fail():
        with IndexUpdate(repo) as index:
            assert lock.exists()
            index.remove(b"f")
            index.set(b"g", 0o100644, b"no id")

    with pytest.raises(ValueError, match="no id"):
        fail()
    assert not lock.exists()
    assert (top / ".git" / "index").read_bytes() == before


def test_nothing_changed_nothing_written(repo, top):
    stage(repo, top, {"f": "x"})
    before = (top / ".git" / "index").stat()
    with IndexUpdate(repo) as index:
        index.remove(b"nope")
    after = (top / ".git" / "index").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_another_index_file(repo, top, git):
    stage(repo, top, {"f": "x"})
    other = top / ".git" / "next-index-1.lock"
    other.write_bytes((top / ".git" / "index").read_bytes())
    with IndexUpdate(repo, other) as index:
        index.remove(b"f")
    assert [entry.path for entry in repo.staged()] == [b"f"]
    assert list(repo.staged(index=other)) == []


def test_permissions_of_the_index_stay(repo, top):
    stage(repo, top, {"f": "x"})
    (top / ".git" / "index").chmod(0o660)
    stage(repo, top, {"g": "x"})
    assert (top / ".git" / "index").stat().st_mode & 0o777 == 0o660


def test_split_and_sparse_indexes_are_left_to_git(repo, top, git):
    stage(repo, top, {"a/f": "x", "b/f": "x"})
    git("commit", "-q", "-m", "x")
    git("update-index", "--split-index")
    with pytest.raises(UnsupportedIndexError, match="split"), IndexUpdate(repo):
        pass
    assert not (top / ".git" / "index.lock").exists()
    [sha] = write_blobs(repo, [b"new"])
    update_with_git(repo, [(0o100644, sha, b"b/new"), (0, b"", b"a/f")])
    assert [entry.path for entry in repo.staged()] == [b"b/f", b"b/new"]
    git("update-index", "--no-split-index")
    git("reset", "-q", "--hard")
    git("sparse-checkout", "set", "--sparse-index", "a")
    with pytest.raises(UnsupportedIndexError, match="sparse"), IndexUpdate(repo):
        pass


@pytest.mark.parametrize(("version", "paths"), [("2", [LONG]), ("4", [LONG]), ("4", FAR)])
def test_names_that_are_left_to_git(repo, top, git, version, paths):
    stage(repo, top, {"f": "x"})
    git("update-index", "--index-version", version)
    before = (top / ".git" / "index").read_bytes()
    [sha] = write_blobs(repo, [b"x"])

    def update():
        with IndexUpdate(repo) as index:
            for path in paths:
                index.set(path, 0o100644, sha)

    with pytest.raises(UnsupportedIndexError):
        update()
    assert (top / ".git" / "index").read_bytes() == before
    assert not (top / ".git" / "index.lock").exists()
    update_with_git(repo, [(0o100644, sha, path) for path in paths])
    assert [entry.path for entry in repo.staged()] == sorted([*paths, b"f"])
    with pytest.raises(UnsupportedIndexError):
        update()
    with pytest.raises(UnsupportedIndexError):
        unchanged(repo, [b"f"])


def test_extensions_that_git_writes(repo, top, git):
    stage(repo, top, {"f": "x", "g": "y"})
    git("commit", "-q", "-m", "x")
    git("config", "core.untrackedCache", "true")
    git("config", "index.threads", "2")
    git("status")
    assert b"UNTR" in (top / ".git" / "index").read_bytes()
    stage(repo, top, {"f": "z"})
    assert b"UNTR" not in (top / ".git" / "index").read_bytes()
    assert git("status", "--porcelain") == "M  f\n"


def test_a_damaged_index_is_left_to_git(repo, top):
    stage(repo, top, {"f": "x"})
    path = top / ".git" / "index"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(UnsupportedIndexError, match="damaged"), IndexUpdate(repo):
        pass


def test_sha256(tmp_path, git):
    git("init", "-q", "--object-format=sha256", "s", cwd=tmp_path)
    repo = Repo.discover(tmp_path / "s")
    stage(repo, tmp_path / "s", {"a/f": "x", "g": "y"})
    assert git("status", "--porcelain", cwd=tmp_path / "s") == "A  a/f\nA  g\n"
    git("commit", "-q", "-m", "x", cwd=tmp_path / "s")
    stage(repo, tmp_path / "s", {"a/f": "xx"})
    assert git("diff", "--cached", "--name-only", cwd=tmp_path / "s") == "a/f\n"
    git("fsck", "--cache", cwd=tmp_path / "s")


def test_a_linked_worktree(repo, top, git, tmp_path):
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("worktree", "add", "-q", "../w")
    linked = Repo.discover(tmp_path / "w")
    stage(linked, tmp_path / "w", {"f": "x"})
    assert git("status", "--porcelain", cwd=tmp_path / "w") == "A  f\n"
    assert git("status", "--porcelain") == ""


def test_an_executable_file_and_a_link(repo, top, git):
    with IndexUpdate(repo) as index:
        write(top, "run", "x")
        (top / "run").chmod(0o755)
        (top / "link").symlink_to("run")
        [script, target] = write_blobs(repo, [b"x", b"run"])
        index.set(b"run", 0o100755, script, (top / "run").stat())
        index.set(b"link", 0o120000, target, (top / "link").lstat())
    assert git("diff", "--name-only") == ""
    assert [entry.mode for entry in repo.staged()] == [0o120000, 0o100755]


def test_the_cached_trees_stay_when_only_stat_data_change(repo, top, git):
    stage(repo, top, {"a/f": "x"})
    git("commit", "-q", "-m", "x")
    stage(repo, top, {"a/f": "x"}, seconds=50)
    assert b"-1 " not in (top / ".git" / "index").read_bytes()
    assert git("diff", "--name-only") == ""
    assert has_stat(top, git, "a/f")


def test_unchanged_files_are_known_by_their_stat_data(repo, top, git):
    stage(repo, top, {"same": "x", "edited": "x", "touched": "x", "gone": "x", "empty": "", "now": "x"})
    assert unchanged(repo, [b"same", b"untracked"]) == {b"same"}
    write(top, "edited", "longer")
    age(top / "touched", 9)
    (top / "gone").unlink()
    paths = [b"same", b"edited", b"touched", b"gone", b"empty"]
    assert unchanged(repo, paths) == {b"same", b"empty"}
    stage(repo, top, {"now": "y"}, seconds=0)
    assert unchanged(repo, [b"now", b"same"]) == {b"same"}


def test_a_suspected_entry_is_not_taken_for_an_empty_file(repo, top, git):
    [sha] = write_blobs(repo, [b"x"])
    stat = write(top, "f", "", 50)
    with IndexUpdate(repo) as index:
        index.set(b"f", 0o100644, sha, stat)
    assert unchanged(repo, [b"f"]) == set()
