from __future__ import annotations

from gds_lfs.porcelain.tracking import TEMPLATE, Registration


def test_a_dataset_at_the_top_has_anchored_patterns() -> None:
    registration = Registration(b"index.py", b"dataset.sqlite")
    assert registration.attribute_patterns(["image", "mask"]) == [b"/dataset.sqlite", b"/image/**", b"/mask/**"]
    assert registration.ignore_patterns == [
        b"/dataset.sqlite-wal*", b"/dataset.sqlite-shm*", b"/dataset.sqlite-journal*",
    ]  # fmt: skip


def test_a_dataset_in_a_folder_keeps_to_it() -> None:
    registration = Registration(b"cats/index.py", b"cats/cats.sqlite")
    assert registration.folder == b"cats/"
    assert registration.attribute_patterns(["image"]) == [b"/cats/cats.sqlite", b"/cats/image/**"]


def test_the_template_is_python() -> None:
    compile(TEMPLATE, "index.py", "exec")
