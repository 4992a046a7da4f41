from __future__ import annotations

import os
import random
import threading

import pytest

from gds_lfs.content.hashing import EMPTY, oid_of
from gds_lfs.content.manifest import Manifest
from gds_lfs.content.pointer import Pointer
from gds_lfs.errors import CorruptObjectError, MissingObjectError
from gds_lfs.store import pack
from gds_lfs.store.local import LocalStore

HELLO = oid_of(b"hello")


def put(root, *contents: bytes, framed: bool = True) -> list[Pointer]:
    store = LocalStore(root)
    with store.writer(framed) as writer:
        pointers = [writer.add_bytes(content) for content in contents]
    store.close()
    return pointers


def flip(path, at: int) -> None:
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def place_of(store: LocalStore, kind: int, oid: bytes):
    return store.locate(kind, [oid])[oid]


def test_a_store_that_does_not_exist_reads_as_empty(store, root):
    assert not store.has(HELLO)
    assert store.missing([HELLO, EMPTY]) == {HELLO}
    assert store.manifests([HELLO]) == {}
    assert store.packs() == []
    assert store.recover() == 0
    with pytest.raises(MissingObjectError, match=HELLO.hex()) as caught:
        store.read(HELLO)
    assert caught.value.oid == HELLO
    with store.writer(framed=False) as writer:
        writer.add_bytes(b"")
    assert not root.exists()


def test_the_empty_content_is_never_missing(store):
    assert store.has(EMPTY)
    assert store.read(EMPTY) == b""
    assert store.manifest(EMPTY) == Manifest(EMPTY, 0, ())
    store.verify(EMPTY)


@pytest.mark.parametrize("framed", [True, False])
def test_contents_come_back(store, root, large, framed):
    contents = [b"hello", b"x" * 131_072, large, large[:140_000], large[1000:]]
    pointers = put(root, *contents, framed=framed)
    assert pointers == [Pointer(oid_of(content), len(content)) for content in contents]
    assert store.missing([pointer.oid for pointer in pointers]) == set()
    for pointer, content in zip(pointers, contents, strict=True):
        assert store.read(pointer.oid) == content
        assert store.manifest(pointer.oid).size == pointer.size
        store.verify(pointer.oid)


def test_manifests_of_small_and_large_files(store, root, large):
    put(root, b"hello", large)
    listed = store.manifest(oid_of(large))
    assert [size for _, size in listed.chunks] == [len(piece) for piece in store.pieces(oid_of(large))]
    assert store.manifest(HELLO) == Manifest(HELLO, 5, ((HELLO, 5),))
    absent = oid_of(b"absent")
    assert store.manifests([HELLO, oid_of(large), absent]) == {HELLO: store.manifest(HELLO), oid_of(large): listed}
    with pytest.raises(MissingObjectError):
        store.manifest(absent)


def test_records_are_read_as_stored(store, root):
    put(root, b"hello", b"world")
    place = place_of(store, pack.CHUNKS, HELLO)
    assert place.size == 5
    assert place.path in store.packs()
    record = store.read_record(place)
    assert pack.unpack(record, store.chunk) == [(HELLO, b"hello"), (oid_of(b"world"), b"world")]
    place.path.unlink()
    store.close()
    with pytest.raises(MissingObjectError, match="gone"):
        store.read_record(place)


def test_what_another_writer_is_still_writing_can_be_read(store, root, large):
    other = LocalStore(root)
    with other.writer(framed=False) as writer:
        writer.add_bytes(b"hello")
        assert store.read(HELLO) == b"hello"
        writer.add_bytes(large)
        assert store.has(oid_of(large))
        assert store.read(oid_of(large)) == large
        assert other.read(HELLO) == b"hello"
        assert store.packs() == []
    assert store.read(HELLO) == b"hello"
    assert store.read(oid_of(large)) == large
    assert len(store.packs()) == 1
    other.close()


def test_a_catalog_that_was_deleted_is_made_anew(store, root, large):
    put(root, b"hello", large)
    (root / "catalog.sqlite").unlink()
    assert store.read(oid_of(large)) == large
    assert store.has(HELLO)


@pytest.mark.parametrize("at", [0, 100, 5000])
def test_a_catalog_that_is_broken_is_made_anew(root, at):
    contents = [str(i).encode() for i in range(500)]
    pointers = put(root, *contents)
    catalog = root / "catalog.sqlite"
    data = catalog.read_bytes()
    catalog.write_bytes(data[:at] + b"\xff" * (len(data) - at))
    store = LocalStore(root)
    assert store.missing([pointer.oid for pointer in pointers]) == set()
    assert store.read(pointers[77].oid) == b"77"
    store.close()


def test_packs_that_come_and_go_by_hand(store, root, tmp_path):
    (kept,) = put(root, b"kept")
    (lost,) = put(root, b"lost")
    path = place_of(store, pack.CHUNKS, lost.oid).path
    path.rename(tmp_path / path.name)
    store.close()
    assert store.missing([kept.oid, lost.oid]) == {lost.oid}
    (tmp_path / path.name).rename(path)
    store.close()
    assert store.read(lost.oid) == b"lost"


def test_a_pack_that_goes_while_the_store_is_open_makes_its_contents_missing(store, root):
    (pointer,) = put(root, b"lost")
    assert store.has(pointer.oid)
    place_of(store, pack.CHUNKS, pointer.oid).path.unlink()
    with pytest.raises(MissingObjectError):
        store.read(pointer.oid)
    assert not store.has(pointer.oid)


def test_a_damaged_chunk_is_caught_set_aside_and_can_be_stored_anew(store, root, large):
    put(root, b"hello", b"other" * 10, framed=False)
    put(root, large)
    place = place_of(store, pack.CHUNKS, HELLO)
    header = store.read_record(place).header
    flip(place.path, place.offset + header.size)
    store.close()
    with pytest.raises(CorruptObjectError, match=HELLO.hex()) as caught:
        store.read(HELLO)
    assert caught.value.oid == HELLO
    assert not store.has(HELLO)
    assert store.read(oid_of(b"other" * 10)) == b"other" * 10
    assert store.read(oid_of(large)) == large
    assert [path.name for path in (root / "quarantine").iterdir()] == [place.path.name]
    put(root, b"hello")
    (root / "catalog.sqlite").unlink()
    again = LocalStore(root)
    assert again.read(HELLO) == b"hello"
    again.close()


def test_verify_says_so_and_moves_nothing(store, root):
    put(root, b"hello")
    assert store.read(HELLO) == b"hello"
    place = place_of(store, pack.CHUNKS, HELLO)
    flip(place.path, place.offset + place.length - 1)
    store.close()
    with pytest.raises(CorruptObjectError):
        store.verify(HELLO)
    assert store.has(HELLO)
    assert not (root / "quarantine").exists()


def test_a_second_whole_copy_serves_where_the_first_is_damaged(root):
    put(root, b"hello", b"one")
    (root / "packs").rename(root / "before")
    put(root, b"hello", b"two")
    for folder in (root / "before").iterdir():
        folder.rename(root / "packs" / folder.name)
    store = LocalStore(root)
    store.refresh()
    place = place_of(store, pack.CHUNKS, HELLO)
    flip(place.path, place.offset + place.length - 8)
    assert store.read(HELLO) == b"hello"
    assert store.missing([HELLO, oid_of(b"one"), oid_of(b"two")]) == set()
    store.close()


def test_a_file_with_a_damaged_or_lost_chunk_is_missing_as_a_whole(store, root, large):
    put(root, large, framed=False)
    chunk, _ = store.manifest(oid_of(large)).chunks[5]
    place = place_of(store, pack.CHUNKS, chunk)
    flip(place.path, place.offset + place.length - 1)
    store.close()
    with pytest.raises(CorruptObjectError) as caught:
        store.read(oid_of(large))
    assert caught.value.oid == oid_of(large)
    assert store.missing([oid_of(large)]) == {oid_of(large)}
    with pytest.raises(MissingObjectError) as lost:
        store.read(oid_of(large))
    assert lost.value.oid == oid_of(large)
    put(root, large)
    assert store.read(oid_of(large)) == large


def test_a_damaged_manifest_counts_as_missing(store, root, large):
    put(root, large, framed=False)
    place = place_of(store, pack.MANIFESTS, oid_of(large))
    flip(place.path, place.offset + place.length - 1)
    store.close()
    assert store.missing([oid_of(large)]) == {oid_of(large)}
    put(root, large)
    assert store.read(oid_of(large)) == large


@pytest.mark.parametrize("chunks", [[b"a" * 10, b"b" * 10], [b"b" * 20]])
def test_a_manifest_that_lies_is_caught_at_the_end(store, chunks):
    oid = oid_of(b"something else")
    listed = Manifest(oid, 20, tuple((oid_of(chunk), len(chunk)) for chunk in chunks))
    with store.writer(framed=True) as writer:
        for chunk in chunks:
            writer.add_bytes(chunk)
        writer.add_record(pack.make_record(pack.MANIFESTS, [(oid, listed.encode())]))
    with pytest.raises(CorruptObjectError, match="do not make up its hash"):
        store.read(oid)


def test_manifest_objects_are_read(store, large):
    chunks = [large[at : at + 100_000] for at in range(0, len(large), 100_000)]
    manifest = Manifest(oid_of(large), len(large), tuple((oid_of(chunk), len(chunk)) for chunk in chunks))
    halves = manifest.encode()[:1000], manifest.encode()[1000:]
    with store.writer(framed=True) as writer:
        for content in (*chunks, *halves):
            writer.add_bytes(content)
        ids = b"".join(map(oid_of, halves))
        writer.add_record(pack.make_record(pack.MANIFEST_OBJECTS, [(oid_of(large), ids)]))
    assert store.has(oid_of(large))
    assert store.manifest(oid_of(large)) == manifest
    assert store.read(oid_of(large)) == large


def test_chunks_encoded_on_each_other_in_a_circle_are_an_error_and_no_endless_loop(store):
    ids = [oid_of(b"a" * 100), oid_of(b"b" * 100)]
    with store.writer(framed=False) as writer:
        for oid, base in (ids, ids[::-1]):
            header = pack.Header(pack.CHUNKS, pack.ZSTD_DICT, ((oid, 100),), 100, 5, base, 0)
            writer.add_record(pack.Record(header, b"12345"))
        with pytest.raises(CorruptObjectError, match="circle"):
            store.read(ids[0])


def test_a_file_that_equals_a_manifest_is_no_collision(store, root, large):
    put(root, large)
    encoded = store.manifest(oid_of(large)).encode()
    put(root, encoded)
    assert store.read(oid_of(encoded)) == encoded
    assert store.read(oid_of(large)) == large


def test_a_repository_that_may_only_be_read(root):
    (pointer,) = put(root, b"hello")
    (root / "catalog.sqlite").unlink()
    (root / "catalog.sqlite").mkdir()  # cannot be opened, as in a folder that cannot be written
    store = LocalStore(root)
    assert store.read(pointer.oid) == b"hello"
    store.close()


def test_many_threads_read_at_once(store, root, large):
    contents = [random.Random(i).randbytes(20_000) for i in range(60)] + [large]
    pointers = put(root, *contents)
    wrong = []

    def read_all(seed: int) -> None:
        order = list(zip(pointers, contents, strict=True))
        random.Random(seed).shuffle(order)
        wrong.extend(pointer for pointer, content in order if store.read(pointer.oid) != content)

    threads = [threading.Thread(target=read_all, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_modes_follow_the_umask(root):
    before = os.umask(0o027)
    try:
        put(root, b"hello")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in root.rglob("*.pack")] == [0o440]
    assert {path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_dir()} == {0o750}
