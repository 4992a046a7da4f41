from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from gds_lfs.content.hashing import EMPTY, oid_of
from gds_lfs.content.pointer import Pointer
from gds_lfs.errors import StoreWriteError
from gds_lfs.store import pack, writer
from gds_lfs.store.local import LocalStore


def files_in(root: Path) -> list[str]:
    return sorted(path.relative_to(root).parts[0] for path in root.rglob("*") if path.is_file())


def bytes_in(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*.pack"))


def test_unframed_content_is_complete_in_a_file_before_add_returns(store, root, large):
    with store.writer(framed=False) as writing:
        for content in (b"hello", large, b"more"):
            writing.add(io.BytesIO(content).read)
            (temp,) = root.glob("tmp/*.pack")
            data = temp.read_bytes()
            entries = list(pack.scan(lambda offset, size, data=data: data[offset : offset + size], len(data)))
            last = entries[-1]
            assert last.offset + last.header.record_size == len(data)
            assert oid_of(content) in {oid for entry in entries for oid, _ in entry.header.members}


def test_small_contents_share_a_frame(store):
    contents = [f"row {i}, much like the others\n".encode() * 20 for i in range(1500)]
    with store.writer(framed=True) as writing:
        for content in contents:
            writing.add_bytes(content)
    places = store.locate(pack.CHUNKS, map(oid_of, contents))
    records = {place.offset: place.length for place in places.values()}
    assert len(records) == 1
    assert sum(records.values()) < sum(map(len, contents)) / 5


def test_frames_are_bounded(store):
    contents = [random.Random(i).randbytes(100_000) for i in range(40)] + [str(i).encode() for i in range(5000)]
    with store.writer(framed=True) as writing:
        for content in contents:
            writing.add_bytes(content)
    for place in set(store.locate(pack.CHUNKS, map(oid_of, contents)).values()):
        header = store.read_record(place).header
        assert header.raw_size <= writer.FRAME_SIZE
        assert len(header.members) <= writer.FRAME_MEMBERS


@pytest.mark.parametrize("framed", [True, False])
def test_what_is_stored_is_not_written_again(store, root, large, framed):
    with store.writer(framed) as writing:
        writing.add_bytes(large)
        writing.add_bytes(b"hello")
        writing.add_bytes(large)
        writing.add_bytes(b"hello")
    size = bytes_in(root)
    assert size < len(large) * 1.01
    with store.writer(framed) as writing:
        writing.add_bytes(large)
        writing.add_bytes(b"hello")
    assert bytes_in(root) == size
    assert files_in(root) == ["catalog.sqlite", "packs"]
    with store.writer(framed) as writing:
        writing.add_bytes(large[:3_000_000] + b"an insertion" + large[3_000_000:])
    assert bytes_in(root) < size + 600_000


def test_repeated_chunks_are_stored_once(store, root):
    zeros = bytes(5_000_000)
    with store.writer(framed=True) as writing:
        pointer = writing.add_bytes(zeros)
    assert bytes_in(root) < 5000
    assert store.read(pointer.oid) == zeros
    assert len(store.manifest(pointer.oid).chunks) > 10


def test_a_reader_may_give_a_few_bytes_at_a_time(store, large):
    stream = io.BytesIO(large)
    rng = random.Random(1)
    with store.writer(framed=False) as writing:
        pointer = writing.add(lambda size: stream.read(min(size, rng.randint(1, 50_000))))
        assert writing.add(io.BytesIO(b"").read) == Pointer(EMPTY, 0)
        assert writing.add(io.BytesIO(b"x").read) == Pointer(oid_of(b"x"), 1)
    assert pointer == Pointer(oid_of(large), len(large))
    assert store.read(pointer.oid) == large


@pytest.mark.parametrize("framed", [True, False])
def test_files_are_added_in_order_with_their_stat(store, tmp_path, large, framed):
    contents = [random.Random(i).randbytes(i * 37) for i in range(200)]
    contents[30], contents[199] = large, b"x" * 131_073
    paths: list[str | bytes | Path] = []
    for i, content in enumerate(contents):
        path = tmp_path / f"file {i}"
        path.write_bytes(content)
        paths.append([str(path), os.fsencode(path), path][i % 3])
    with store.writer(framed) as writing:
        added = list(writing.add_files(paths))
    assert [each.pointer for each in added] == [Pointer(oid_of(content), len(content)) for content in contents]
    assert [each.stat.st_ino for each in added] == [os.stat(path).st_ino for path in paths]
    assert store.missing(each.pointer.oid for each in added) == set()
    assert all(store.read(oid_of(content)) == content for content in contents)


def test_a_file_that_cannot_be_read_spoils_nothing_else(store, tmp_path):
    good = tmp_path / "good"
    good.write_bytes(b"good")
    with store.writer(framed=True) as writing:
        before = writing.add_bytes(b"before")
        with pytest.raises(FileNotFoundError):
            list(writing.add_files([good, tmp_path / "absent"]))

        def fails(size: int) -> bytes:
            raise OSError("the other end has gone")

        with pytest.raises(OSError, match="gone"):
            writing.add(fails)
        list(writing.add_files([good]))
    assert store.missing([before.oid, oid_of(b"good")]) == set()


def test_packs_are_rolled_over(store, root, monkeypatch, large):
    monkeypatch.setattr(writer, "PACK_SIZE", 1_000_000)
    with store.writer(framed=False) as writing:
        pointer = writing.add_bytes(large)
        assert store.read(pointer.oid) == large
    assert len(store.packs()) >= 4
    assert store.read(pointer.oid) == large
    for path in store.packs():
        assert oid_of(path.read_bytes()).hex() == path.stem
        assert path.parent.name == path.stem[:2]
        assert path.stat().st_size < 2_200_000
    assert files_in(root / "tmp") == []


def test_a_sealed_writer_can_go_on(store):
    with store.writer(framed=True) as writing:
        first = writing.add_bytes(b"first")
        writing.seal()
        assert len(store.packs()) == 1
        second = writing.add_bytes(b"second")
        assert writing.add_bytes(b"first") == first
    assert len(store.packs()) == 2
    assert store.missing([first.oid, second.oid]) == set()


def test_records_are_taken_verbatim_and_once(store):
    record = pack.make_record(pack.CHUNKS, [(oid_of(b"a" * 99), b"a" * 99), (oid_of(b"b"), b"b")])
    with store.writer(framed=True) as writing:
        writing.add_record(record)
        writing.add_record(record)
    (path,) = store.packs()
    assert path.read_bytes().startswith(pack.PACK_HEADER + pack.encode_record(record) + b"GDSF")
    assert store.read_record(store.locate(pack.CHUNKS, [oid_of(b"b")])[oid_of(b"b")]) == record


def test_two_writers_at_once(root, large):
    def write(seed: int) -> None:
        store = LocalStore(root)
        with store.writer(framed=seed % 2 == 0) as writing:
            for i in range(100):
                writing.add_bytes(b"%d" % (i % 50 + seed * 25))
            writing.add_bytes(large)
        store.close()

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = LocalStore(root)
    assert store.missing([oid_of(b"%d" % i) for i in range(125)] + [oid_of(large)]) == set()
    assert store.read(oid_of(large)) == large
    assert files_in(root / "tmp") == []
    store.close()


FULL_DISK = """
import resource, sys
from pathlib import Path
from gds_lfs.content.hashing import oid_of
from gds_lfs.errors import StoreWriteError
from gds_lfs.store.local import LocalStore
import random
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
store = LocalStore(Path(sys.argv[1]))
framed = sys.argv[2] == "framed"
contents = [random.Random(i).randbytes(300_000 if framed else 100_000) for i in range(8 if framed else 20)]
stored = []
try:
    with store.writer(framed) as writer:
        for content in contents:
            try:
                writer.add_bytes(content)
            except StoreWriteError as error:
                assert str(Path(sys.argv[1])) in str(error) and "too large" in str(error), error
                print("refused")
            else:
                stored.append(oid_of(content).hex())
        if not framed:
            writer.add_bytes(b"a little still fits")
except StoreWriteError as error:
    print("failed")
    sys.exit(0)
print(*stored, sep="\\n")
"""

if TYPE_CHECKING:
    from pathlib import Path


def run(program: str, *args: object) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program, *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_full_disk_fails_the_one_content_and_keeps_the_others(store, root):
    output = run(FULL_DISK, root, "unframed")
    stored = [bytes.fromhex(line) for line in output if line not in ("refused", "failed")]
    assert output.count("refused") + len(stored) == 20
    assert 8 <= len(stored) <= 9
    assert store.missing(stored) == set()
    assert store.read(oid_of(b"a little still fits"))
    for oid in stored:
        store.verify(oid)


def test_a_full_disk_fails_a_framed_writer_for_good(root):
    assert run(FULL_DISK, root, "framed")[-1] == "failed"


def test_after_a_failed_write_nothing_gathered_counts_as_stored(store, monkeypatch):
    with store.writer(framed=False) as writing:
        writing.add_bytes(b"before")
        with monkeypatch.context() as broken:
            broken.setattr(os, "write", fail)
            with pytest.raises(StoreWriteError, match="No space left"):
                writing.add_bytes(b"content")
        writing.add_bytes(b"content")
        writing.add_bytes(b"after")
    assert [store.read(oid_of(content)) for content in (b"before", b"content", b"after")]


def test_an_interrupt_in_the_middle_of_a_record_leaves_a_sound_store(store, monkeypatch):
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    with store.writer(framed=False) as writing:
        writing.add_bytes(b"before")
        with monkeypatch.context() as broken:
            broken.setattr(pack.Entry, "__new__", interrupt)
            with pytest.raises(KeyboardInterrupt):
                writing.add_bytes(b"interrupted")
        writing.add_bytes(b"after")
    assert store.recover() == 1
    for content in (b"before", b"interrupted", b"after"):
        store.verify(oid_of(content))


def fail(*args: object) -> int:
    raise OSError(28, "No space left on device")
