from __future__ import annotations

import pytest

from gds_lfs.dataset.parse.leap_yaml import LeapYaml, LeapYamlError, read

FILES = [
    "leap_binder.py",
    "leap.yaml",
    "requirements.txt",
    "lib/__init__.py",
    "lib/deep/images.py",
    "lib/deep/test_images.py",
    "data/a.csv",
    "data/b.tsv",
]


def selected(text: str) -> list[str]:
    return read(text).select(FILES).files


def test_every_key() -> None:
    text = """
    projectId: abc
    secretId: ""
    branch: main
    entryFile: './leap_binder.py'   # quoted
    include: [lib/**, "*.txt"]
    exclude:
      - '**/test_*'
    pythonVersion: py310
    """
    assert read(text) == LeapYaml("leap_binder.py", ["lib/**", "*.txt"], ["**/test_*"], (3, 10))
    assert selected(text) == ["leap_binder.py", "lib/__init__.py", "lib/deep/images.py", "requirements.txt"]


@pytest.mark.parametrize("text", ["entryFile: leap_binder.py", "entryFile: leap_binder.py\ninclude:\nexclude: []"])
def test_no_include_means_everything(text: str) -> None:
    assert selected(text) == sorted(FILES)


def test_the_entry_file_goes_even_if_it_is_excluded() -> None:
    assert selected("entryFile: leap_binder.py\ninclude: [data/*]\nexclude: ['**']") == ["leap_binder.py"]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("*.py", ["leap_binder.py"]),
        ("**/*.py", ["leap_binder.py", "lib/__init__.py", "lib/deep/images.py", "lib/deep/test_images.py"]),
        ("lib/*", ["lib/__init__.py"]),
        ("lib/**/images.py", ["lib/deep/images.py"]),
        ("**/deep/*", ["lib/deep/images.py", "lib/deep/test_images.py"]),
        ("data/?.{csv,tsv}", ["data/a.csv", "data/b.tsv"]),
        ("data/[ab].csv", ["data/a.csv"]),
        ("data/[!a].*", ["data/b.tsv"]),
        ("data\\\\*.csv", ["data/a.csv"]),
        ("./data/a.csv", ["data/a.csv"]),
        ("data/a.cs[", []),
        ("data/a+csv", []),
        ("lib**images.py", []),
    ],
)
def test_patterns(pattern: str, matched: list[str]) -> None:
    files = selected(f'entryFile: leap_binder.py\ninclude: ["{pattern}"]')
    assert files == sorted({*matched, "leap_binder.py"})


def test_patterns_that_match_nothing_are_told() -> None:
    found = read("entryFile: leap_binder.py\ninclude: [lib, nothing/*, data/*]\nexclude: [b.tsv, data/b.tsv]")
    assert found.select(FILES).unmatched == [
        "include: lib matches no file: it is a folder; lib/** matches what is in it",
        "include: nothing/* matches no file",
        "exclude: b.tsv matches no file",
    ]


@pytest.mark.parametrize(
    ("version", "python"),
    [("py38", (3, 8)), ("py312", (3, 12)), ("'3.10'", (3, 10)), ("Python3.9", (3, 9)), ("''", None), ("", None)],
)
def test_python_versions(version: str, python: tuple[int, int] | None) -> None:
    assert read(f"entryFile: a.py\npythonVersion: {version}").python == python


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "leap.yaml: there are no keys in it"),
        ("- a", "leap.yaml: there are no keys in it"),
        ("a: b\nentryFile: [", "leap.yaml:2: this is no YAML"),
        ("a: b\n\tentryFile: c", "leap.yaml:2: this is no YAML"),
        ("include: []", "leap.yaml: entryFile is missing"),
        ("entryFile: [a.py]", "leap.yaml: entryFile is a list"),
        ("entryFile: ../a.py", "leap.yaml: entryFile: ../a.py is outside"),
        ("entryFile: /a.py", "leap.yaml: entryFile: /a.py is outside"),
        ("entryFile: model.onnx", "leap.yaml: entryFile: model.onnx is no Python file"),
        ("entryFile: a.py\ninclude: '**'", "leap.yaml: include is text"),
        ("entryFile: a.py\nexclude: [1]", "leap.yaml: exclude holds a number"),
        ("entryFile: a.py\npythonVersion: 3.10", "leap.yaml: pythonVersion is the number 3.1"),
        ("entryFile: a.py\npythonVersion: latest", "leap.yaml: pythonVersion: latest is no version"),
    ],
)
def test_what_is_wrong_names_file_and_key(text: str, message: str) -> None:
    with pytest.raises(LeapYamlError) as caught:
        read(text)
    headline, advice = str(caught.value).split("\n")
    assert headline.startswith(message)
    assert advice


def test_an_entry_file_that_is_not_there() -> None:
    with pytest.raises(LeapYamlError, match=r"entryFile: there is no leap_binder\.py"):
        read("entryFile: leap_binder.py").select(["other.py"])
