from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest

from gds_lfs.content.hashing import oid_of
from gds_lfs.store import pack
from gds_lfs.store.local import LocalStore

KILLED = """
import os, signal, sys
from pathlib import Path
from gds_lfs.store.local import LocalStore
store = LocalStore(Path(sys.argv[1]))
with store.writer(framed=False) as writer:
    for i in range(100):
        writer.add_bytes(b"content %d" % i)
    writer.add_bytes(bytes(range(256)) * 2000)
    if sys.argv[2] == "write":
        written = os.write
        def half(descriptor, data):
            written(descriptor, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        os.write = half
        writer.add_bytes(b"half" * 100)
    if sys.argv[2] == "rename":
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[2] == "catalog":
        writer._sealed = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""

CONTENTS = [b"content %d" % i for i in range(100)] + [bytes(range(256)) * 2000]
OIDS = [oid_of(content) for content in CONTENTS]


def kill(root, when: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, root, when], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr


def leftovers(root) -> list[str]:
    return sorted(path.suffix for path in (root / "tmp").iterdir())


def abandon(store: LocalStore, contents: list[bytes]) -> None:
    with suppress(ZeroDivisionError), store.writer(framed=False) as writer:
        for content in contents:
            writer.add_bytes(content)
        raise ZeroDivisionError


@pytest.mark.parametrize("when", ["write", "rename", "catalog"])
def test_what_a_killed_writer_had_completed_is_kept(store, root, when):
    kill(root, when)
    assert store.missing(OIDS) == set()  # also before anything is recovered
    assert [store.read(oid) for oid in OIDS] == CONTENTS
    assert not store.has(oid_of(b"half" * 100))
    with store.writer(framed=True) as writer:
        writer.add_bytes(b"next")
    assert leftovers(root) == []
    (root / "catalog.sqlite").unlink()
    again = LocalStore(root)
    assert [again.read(oid) for oid in OIDS] == CONTENTS
    assert all(oid_of(path.read_bytes()).hex() == path.stem for path in again.packs())
    again.close()


def test_leftovers_do_not_pile_up(store, root):
    for _ in range(3):
        kill(root, "write")
    assert store.recover() == 1  # the second and third recovered the one before
    assert leftovers(root) == []
    assert store.recover() == 0
    assert store.missing(OIDS) == set()


def test_a_live_writer_is_left_alone(store, root):
    other = LocalStore(root)
    with other.writer(framed=False) as writer:
        writer.add_bytes(b"alive")
        assert store.recover() == 0
        with store.writer(framed=False) as second:
            second.add_bytes(b"beside it")
        assert leftovers(root) == [".lock", ".pack"]
        writer.add_bytes(b"still")
    other.close()
    assert store.missing([oid_of(b"alive"), oid_of(b"still"), oid_of(b"beside it")]) == set()


def test_an_exception_leaves_what_was_written_to_the_next(store, root):
    abandon(store, [b"kept"])
    assert store.read(oid_of(b"kept")) == b"kept"
    assert store.packs() == []
    assert store.recover() == 1
    assert len(store.packs()) == 1
    assert store.read(oid_of(b"kept")) == b"kept"


def test_a_record_damaged_before_it_was_recovered_is_left_out(store, root):
    abandon(store, CONTENTS[:10])
    place = store.locate(pack.CHUNKS, OIDS)[OIDS[4]]
    data = bytearray(place.path.read_bytes())
    data[place.offset + place.length - 1] ^= 1
    place.path.write_bytes(data)
    assert store.recover() == 1
    assert store.missing(OIDS[:10]) == {OIDS[4]}


def test_an_empty_or_foreign_leftover_goes(store, root):
    (root / "tmp").mkdir(parents=True)
    (root / "tmp" / "0123456789abcdef.lock").touch()
    (root / "tmp" / "1123456789abcdef.lock").touch()
    (root / "tmp" / "1123456789abcdef.pack").write_bytes(b"GDS")
    (root / "tmp" / "2123456789abcdef.lock").touch()
    (root / "tmp" / "2123456789abcdef.pack").write_bytes(bytes(1000))
    assert store.recover() == 3
    assert leftovers(root) == []


def test_a_pack_whose_footer_or_header_is_damaged_is_still_read(store, root):
    with store.writer(framed=False) as writer:
        for content in CONTENTS:
            writer.add_bytes(content)
    (path,) = store.packs()
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    (root / "catalog.sqlite").unlink()
    store.close()
    assert [store.read(oid) for oid in OIDS] == CONTENTS
    data[-20] ^= 1
    data[6] ^= 1  # the first record's own header
    path.write_bytes(data)
    (root / "catalog.sqlite").unlink()
    store.close()
    assert store.read(OIDS[50]) == CONTENTS[50]
    assert store.read(OIDS[0]) == CONTENTS[0]
    assert store.packs() == [path]
    assert oid_of(path.read_bytes()).hex() == path.stem  # nothing was lost, so it is the pack it was


def test_what_came_of_a_pack_from_elsewhere_is_kept(store, root):
    whole = pack.PACK_HEADER + b"".join(
        pack.encode_record(pack.make_record(pack.CHUNKS, [(oid_of(c), c)])) for c in CONTENTS[:3]
    )
    first, second, third = pack.scan(lambda at, size: whole[at : at + size], len(whole))
    incoming = store.incoming()
    incoming.write(third.offset, memoryview(whole)[third.offset :])
    assert LocalStore(root).missing(OIDS[:3]) == set(OIDS[:3]), "nobody reads it yet"
    incoming.write(0, memoryview(whole)[: second.offset])
    incoming.abandon()
    assert leftovers(root) == [".lock", ".part"]
    assert store.recover() == 1
    assert leftovers(root) == []
    assert store.missing(OIDS[:3]) == {OIDS[1]}
    assert first.offset == len(pack.PACK_HEADER)
