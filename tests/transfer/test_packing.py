from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any

import pytest

from gds_lfs.content.manifest import Manifest, decode
from gds_lfs.errors import MissingObjectError
from gds_lfs.remote.draft import Spooled
from gds_lfs.remote.shard import Item, Place
from gds_lfs.store import pack
from gds_lfs.transfer.packing import (
    FRAME_MEMBERS,
    FRAME_SIZE,
    PackFile,
    cut_chunks,
    cut_manifests,
    fill_packs,
)

if TYPE_CHECKING:
    from pathlib import Path

PIECES = [random.Random(n).randbytes(30_000) for n in range(90)]


def oid(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def no_base_there(_: bytes) -> bool:
    return False


NOISE = random.Random(9).randbytes(3 << 20)


def no_base(_: bytes) -> bytes:
    raise AssertionError("no base was named")


def test_a_pack_file(memory: Any, tmp_path: Path) -> None:
    one = pack.make_record(pack.CHUNKS, [(oid(b"a"), b"a"), (oid(b"b"), b"b")])
    two = pack.make_record(pack.MANIFESTS, [(oid(b"c"), b"a manifest")])
    file = PackFile(Spooled(memory, tmp_path))
    file.add(one)
    file.add(two)
    file.seal()
    file.put()
    (data,) = memory.objects.values()
    assert data == pack.PACK_HEADER + pack.encode_record(one) + pack.encode_record(two) + pack.encode_footer(
        [one.header.encode(), two.header.encode()]
    )
    assert (file.id, file.size) == (oid(data), len(data))
    assert file.raw_size == 2
    first, second = one.header.record_size, two.header.record_size
    assert file.items() == [
        Item(pack.CHUNKS, oid(b"a"), Place(file.id, 5, first)),
        Item(pack.CHUNKS, oid(b"b"), Place(file.id, 5, first)),
        Item(pack.MANIFESTS, oid(b"c"), Place(file.id, 5 + first, second)),
    ]
    file.close()
    assert list(tmp_path.iterdir()) == []


def test_each_chunk_is_cut_once_in_order(clone: Any) -> None:
    clone.add(*PIECES[:60], framed=False)
    clone.add(*PIECES[50:])
    for wanted in (PIECES, PIECES[::2], PIECES[45:70], [PIECES[3]]):
        ids = [oid(data) for data in wanted]
        places = clone.store.locate(pack.CHUNKS, ids)
        ordered = {each: places[each] for each in ids}
        records = list(cut_chunks(clone.store, ordered, no_base_there))
        cut = [item for record in records for item in pack.unpack(record, no_base)]
        assert sorted(cut) == sorted((oid(data), data) for data in wanted)
        assert all(record.header.raw_size <= FRAME_SIZE for record in records)


def test_the_same_records_each_time(clone: Any, memory: Any, tmp_path: Path) -> None:
    clone.add(*PIECES, framed=False)
    places = clone.store.locate(pack.CHUNKS, [oid(data) for data in PIECES])
    names = []
    for _ in range(2):
        packs = list(fill_packs(cut_chunks(clone.store, places, no_base_there), lambda: Spooled(memory, tmp_path)))
        names.append([each.id for each in packs])
        for each in packs:
            each.close()
    assert names[0] == names[1]


def test_a_chunk_that_two_packs_hold_is_sent_once(clone: Any, other: Any) -> None:
    clone.add(*PIECES[:10])
    other.add(*PIECES[5:15])
    with clone.store.writer(framed=False) as writer:
        (place,) = set(other.store.locate(pack.CHUNKS, [oid(PIECES[14])]).values())
        writer.add_record(other.store.read_record(place))
    places = clone.store.locate(pack.CHUNKS, [oid(data) for data in PIECES[:15]])
    records = list(cut_chunks(clone.store, places, no_base_there))
    ids = [each for record in records for each, _ in record.header.members]
    assert sorted(ids) == sorted(oid(data) for data in PIECES[:15])


def test_a_pack_that_got_another_name(clone: Any) -> None:
    with clone.store.writer(framed=False) as writer:
        for data in PIECES[:20]:
            writer.add_bytes(data)
        places = clone.store.locate(pack.CHUNKS, [oid(data) for data in PIECES[:20]])
        assert all("tmp" in place.path.parts for place in places.values())
    records = list(cut_chunks(clone.store, places, no_base_there))
    assert {each for record in records for each, _ in record.header.members} == places.keys()


def test_a_pack_that_has_gone(clone: Any, tmp_path: Path) -> None:
    clone.add(PIECES[0])
    places = clone.store.locate(pack.CHUNKS, [oid(PIECES[0])])
    clone.store.close()
    for path in (tmp_path / "one").rglob("*.pack"):
        path.unlink()
    with pytest.raises(MissingObjectError) as caught:
        list(cut_chunks(clone.store, places, no_base_there))
    assert caught.value.oid == oid(PIECES[0])


def test_manifests_share_frames() -> None:
    chunk = (oid(b"x"), 1)
    manifests = [Manifest(oid(b"%d" % n), n, (chunk,) * n) for n in range(2, 400)]
    records = list(cut_manifests(manifests))
    found = [item for record in records for item in pack.unpack(record, no_base)]
    assert [decode(*each) for each in found] == manifests
    assert len(records) == 3
    assert list(cut_manifests([])) == []


def test_a_frame_has_only_so_many_members() -> None:
    manifests = [Manifest(n.to_bytes(32, "big"), 2, ((oid(b"x"), 1),) * 2) for n in range(FRAME_MEMBERS + 1)]
    assert [len(record.header.members) for record in cut_manifests(manifests)] == [FRAME_MEMBERS, 1]


def test_a_failure_closes_the_pack_that_was_begun(memory: Any, tmp_path: Path) -> None:
    class Watched(Spooled):
        closed = False

        def close(self) -> None:
            self.closed = True
            super().close()

    def records() -> Any:
        yield pack.make_record(pack.CHUNKS, [(oid(b"a"), b"a")])
        raise ValueError("no more")

    draft = Watched(memory, tmp_path)
    with pytest.raises(ValueError, match="no more"):
        list(fill_packs(records(), lambda: draft))
    assert draft.closed
