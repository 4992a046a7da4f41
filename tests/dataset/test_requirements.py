from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gds_lfs.dataset.install_failure import EnvironmentFailure
from gds_lfs.dataset.requirements import Requirements, read

if TYPE_CHECKING:
    from pathlib import Path


def requirements(folder: Path, **files: str) -> Requirements:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".txt").write_text(text, encoding="utf-8")
    return read(folder / "requirements.txt")


def test_lines_as_pip_reads_them(tmp_path: Path) -> None:
    found = requirements(tmp_path, requirements="\ufeff# a comment\n\nnumpy>=1 \\\n  ,<3   # why\npillow # 2\nx#y\n")
    assert [(line.number, line.text) for line in found.lines] == [(3, "numpy>=1   ,<3"), (5, "pillow"), (6, "x#y")]


def test_included_files_are_read_once_from_where_they_stand(tmp_path: Path) -> None:
    found = requirements(
        tmp_path,
        requirements="-r more/base.txt\n--constraint=more/limits.txt\n-r https://example.org/r.txt\nsix\n",
        more__base="-c limits.txt\nnumpy\n-r ../requirements.txt",
        more__limits="numpy<2\n",
    )
    assert sorted(found.files) == ["more/base.txt", "more/limits.txt", "requirements.txt"]
    assert [line.text for line in found.lines] == ["numpy<2", "numpy", "six"]


def test_a_missing_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"no requirements\.txt beside the code") as caught:
        read(tmp_path / "requirements.txt")
    assert caught.value.kind == "missing_requirements"
    assert "datasets.dynamicDependencies false" in caught.value.advice


def test_a_missing_included_file_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(
        EnvironmentFailure, match=r"requirements\.txt:2 includes base\.txt, which is not there"
    ) as caught:
        requirements(tmp_path, requirements="six\n-r base.txt\n")
    assert caught.value.kind == "missing_requirements"


@pytest.mark.parametrize("line", ["-e .", "--editable=./package"])
def test_what_is_tied_to_a_folder_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(EnvironmentFailure, match=rf"requirements\.txt:1: {line}"):
        requirements(tmp_path, requirements=line)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("code-loader==1.0", True),
        ("Code_Loader[x] ; python_version > '3.8'", True),
        ("code-loader @ git+https://example.org/code-loader", True),
        ("git+https://example.org/code_loader.git", True),
        ("./wheels/code_loader-1.0-py3-none-any.whl", True),
        ("code-loader-helpers", False),
        ("numpy", False),
        ("--index-url https://example.org/simple", False),
    ],
)
def test_whether_a_package_is_named(tmp_path: Path, line: str, named: bool) -> None:
    assert requirements(tmp_path, requirements=line).names("code-loader") is named


def test_local_places(tmp_path: Path) -> None:
    text = "./one\nlib/two.whl ; python_version > '3'\nthree @ file:///elsewhere\nfour\nhttps://example.org/five.whl\n"
    assert list(requirements(tmp_path, requirements=text).places) == ["./one", "lib/two.whl"]
