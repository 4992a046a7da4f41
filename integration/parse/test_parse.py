"""`git datasets parse`: what somebody else would have of a dataset, and what it says when that is not enough."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import msgspec
import pytest
from machines import Done, Machine, digests, is_clean

from gds_lfs.dataset.parse.result import Finding, Result

CODE = """\
from pathlib import Path

from gds_lfs import File, dataset, ground_truth, ingest, input, metadata, preprocess, txt

HERE = Path(__file__).parent


@dataset
class D:
    a: File[txt]
    label: str

    @ingest
    def load():
        return [b"one", b"two", b"three"], ["x", "y", "x"]

    @preprocess
    def split(rows):
        return {"training": rows[:2], "validation": rows[2:]}

    @input("a")
    def an_input(row):
        return [row.a.read_bytes()[0]]

    @ground_truth("label")
    def a_label(row):
        return ["x", "y"].index(row.label)
"""
LINE = CODE.count("\n") + 4
READING = """
    @metadata("m")
    def m(row):
        return len(READ)
"""
"""Code that reads something at `LINE`."""


def parse(machine: Machine, repo: Path, *options: str, code: int = 0) -> Result:
    """The result of a parse, which is also what its JSON says."""
    done = machine.gd(repo, "parse", "--json", *options, check=False)
    assert done.returncode == code, done.stderr
    return msgspec.json.decode(done.stdout, type=Result)


def failure(machine: Machine, repo: Path, *options: str) -> Finding:
    (found,) = parse(machine, repo, *options, code=5).failures
    return found


def stage(machine: Machine, repo: Path, text: str, name: str = "index.py") -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text(text)
    machine.git(repo, "add", name)


@pytest.fixture
def repo(ready: Machine) -> Path:
    """A repository with a staged dataset."""
    repo = ready.repo()
    (repo / "index.py").write_text(CODE)
    ready.gd(repo, "track", "index.py")
    return repo


def test_a_report_for_people(ready: Machine, repo: Path) -> None:
    before = digests(repo), ready.git(repo, "ls-files", "-s").stdout
    done = ready.gd(repo, "parse")
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(("✓", "✗", "–"))] == [
        ["✓", name] for name in ("files", "environment", "functions", "rows", "preprocess", "samples")
    ]
    assert lines[-1].startswith("valid: 2 samples looked at (")
    assert any("training" in line and "input a" in line and "int" in line and "111" in line for line in lines)
    assert (digests(repo), ready.git(repo, "ls-files", "-s").stdout) == before
    assert list((repo / ".git/datasets/tmp").iterdir()) == []
    for number in range(6):
        stage(ready, repo, "a" * number, f"file{number}")
    assert "    and 5 smaller, " in ready.gd(repo, "parse").stdout
    assert "    file0" in ready.gd(repo, "parse", "-v").stdout


def test_a_failure_ends_the_report(ready: Machine, repo: Path) -> None:
    stage(ready, repo, CODE + READING.replace("READ", "row.nonsense"))
    done = ready.gd(repo, "parse", check=False)
    assert done.returncode == 5
    assert f"  ✗ index.py:{LINE}, in m: AttributeError: 'nonsense' is no field" in done.stdout
    assert "    in metadata m, split training, sample " in done.stdout
    assert "    → mend the line" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("not valid: 2 failures (")


def test_the_whole_result_as_json(ready: Machine, repo: Path) -> None:
    result = parse(ready, repo, "--samples", "2")
    assert (result.schema, result.valid, result.entry, result.rev) == (1, True, "index.py", None)
    assert [file.path for file in result.files] == [".datasetsconfig", ".gitattributes", ".gitignore", "index.py"]
    assert result.rows is not None
    assert (result.rows.count, result.rows.added, result.rows.ingests) == (3, 3, ["load"])
    assert [(each.split, each.position) for each in result.samples if each.kind == "input"] == [
        ("training", 0),
        ("training", 1),
        ("validation", 0),
    ]


def test_a_commit_is_parsed_as_it_is(ready: Machine, repo: Path) -> None:
    ready.git(repo, "commit", "-qm", "good")
    stage(ready, repo, "1 / 0\n")
    assert not parse(ready, repo, code=5).valid
    result = parse(ready, repo, "--rev", "HEAD")
    assert (result.valid, result.rev) == (True, "HEAD")
    assert result.rows is not None
    assert (result.rows.count, result.rows.added) == (3, 0)
    assert ready.gd(repo, "parse", "--rev", "nonsense", check=False).returncode == 3
    done = ready.gd(repo, "parse", "nothing", "--rev", "HEAD", check=False)
    assert (done.returncode, "nothing: no such dataset is in HEAD; name" in done.stderr) == (4, True)


def test_which_dataset(ready: Machine, repo: Path) -> None:
    stage(ready, repo, CODE, "other/index.py")
    assert parse(ready, repo, "other").entry == parse(ready, repo / "other", "index.py").entry == "other/index.py"
    assert parse(ready, repo).entry == "index.py"
    done = ready.gd(repo, "parse", "nothing", check=False)
    said = "nothing: no such dataset is staged (git datasets new, git add); name an index.py"
    assert (done.returncode, said in done.stderr) == (4, True)


def test_only_the_first_rows_of_an_ingest_go_on(ready: Machine, repo: Path) -> None:
    many = CODE.replace('[b"one", b"two", b"three"]', '[b"%d" % n for n in range(300)]').replace(
        '["x", "y", "x"]', '["x"] * 300'
    )
    stage(ready, repo, many)
    result = parse(ready, repo)
    assert result.rows is not None
    assert (result.rows.count, result.rows.complete) == (100, False)
    assert [split.length for split in parse(ready, repo, "--full").splits] == [2, 298]


def wrong(machine: Machine, repo: Path, read: str) -> Finding:
    """What is told of code that reads something, in the first of both splits."""
    stage(machine, repo, CODE + READING.replace("READ", read))
    first, second = parse(machine, repo, code=5).failures
    assert first.kind == second.kind
    assert (first.where, first.function, first.split) == (f"index.py:{LINE}, in m", "metadata m", "training")
    return first


def test_a_file_that_is_not_in_the_commit(ready: Machine, repo: Path) -> None:
    (repo / "more").mkdir()
    (repo / "more/labels.csv").write_text("a")
    read = '(HERE / "more/labels.csv").read_text()'
    found = wrong(ready, repo, read)
    assert found.kind == "file_not_in_commit"
    assert "it is on this machine, but not in the commit" in found.text
    assert found.advice == "git add more/labels.csv"
    assert wrong(ready, repo, '__import__("os").listdir(HERE / "more")').advice == "git add more"
    (repo / ".gitignore").write_text("more\n")
    assert wrong(ready, repo, read).advice == "git add -f more/labels.csv"
    ready.git(repo, "add", "-f", "more/labels.csv")
    assert parse(ready, repo).valid


def test_a_file_that_is_nowhere(ready: Machine, repo: Path) -> None:
    stage(ready, repo, "a", "Labels.csv")
    found = wrong(ready, repo, 'open("labels.csv").read()')
    assert (found.kind, found.advice) == ("file_not_found", "is Labels.csv meant?")
    stage(ready, repo, "a", "more/names.csv")
    assert wrong(ready, repo, 'open("names.csv").read()').advice == "is more/names.csv meant?"
    found = wrong(ready, repo, 'open("/nowhere/x.csv").read()')
    assert (found.kind, "absent elsewhere" in found.text) == ("file_outside", True)
    found = wrong(ready, repo, "open(HERE / 'a/x.txt').read()")
    assert (found.kind, found.advice) == ("file_not_found", "mend the path, or add the file")


def test_data_that_was_not_fetched(ready: Machine, repo: Path) -> None:
    ready.git(repo, "remote", "add", "origin", ready.bare())
    ready.gd(repo, "track", "*.bin")
    stage(ready, repo, "w" * 5000, "weights.bin")
    ready.git(repo, "add", ".gitattributes")
    stage(ready, repo, CODE + READING.replace("READ", '(HERE / "weights.bin").read_text()'))
    result = parse(ready, repo)
    assert result.samples[-1].value is not None
    assert result.samples[-1].value.max == 5000
    ready.git(repo, "commit", "-qm", "weights")
    ready.git(repo, "push", "-q", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    clone = ready.root / "clone"
    shutil.copyfile(repo / "dataset.sqlite", clone / "dataset.sqlite")
    result = parse(ready, clone, code=5)
    kinds = {(each.function, each.kind) for each in result.failures}
    assert kinds == {("input a", "file_not_fetched"), ("metadata m", "file_not_fetched")}
    assert [file.path for file in result.files if not file.fetched] == ["weights.bin"]
    assert next(each for each in result.failures if each.function == "metadata m").advice == (
        "fetch it: git datasets pull --include weights.bin"
    )
    for each in result.failures:
        ready.gd(clone, *each.advice.removeprefix("fetch it: git datasets ").split())
    assert parse(ready, clone).valid


def test_large_files_are_linked_where_the_work_tree_has_them_unchanged(ready: Machine, repo: Path) -> None:
    ready.gd(repo, "track", "*.bin")
    ready.git(repo, "add", ".gitattributes")
    stage(ready, repo, "a" * (2 << 20), "large.bin")
    stage(ready, repo, "b" * (2 << 20), "plain.txt")
    read = '[(HERE / n).stat().st_nlink * 10 + (HERE / n).read_text().count("c") for n in ("large.bin", "plain.txt")]'
    text = CODE + READING.replace("len(READ)", "{str(n): n for n in READ}")
    stage(ready, repo, text.replace("READ", read))

    def seen() -> set[str]:
        value = parse(ready, repo).samples[-1].value
        assert value is not None
        return set(value.items or ())

    assert seen() == {"20"}
    for name in ("large.bin", "plain.txt"):
        (repo / name).write_text("c" * (2 << 20))
    assert seen() == {"10"}


def test_a_module_that_is_not_there(ready: Machine, repo: Path) -> None:
    stage(ready, repo, "import helper\n" + CODE)
    (repo / "helper.py").write_text("")
    found = failure(ready, repo)
    assert (found.kind, found.where, found.advice) == ("module_not_found", "index.py:1", "git add helper.py")
    ready.git(repo, "add", "helper.py")
    assert parse(ready, repo).valid
    stage(ready, repo, "import helpr\n" + CODE)
    assert failure(ready, repo).advice == "is helper meant?"
    stage(ready, repo, "import nowhere_at_all\n" + CODE)
    assert "add nowhere_at_all to requirements.txt" in failure(ready, repo).advice
    stage(ready, repo, "nowhere-at-all==1\n", "requirements.txt")
    found = failure(ready, repo)
    assert "requirements.txt asks for nowhere-at-all, but it is not installed there" in found.text
    assert "git config datasets.dynamicDependencies true" in found.advice


def test_requirements_that_are_missing(ready: Machine, repo: Path) -> None:
    ready.git(repo, "config", "datasets.dynamicDependencies", "true")
    result = parse(ready, repo, code=5)
    assert [each.kind for each in result.failures] == ["missing_requirements"]
    assert result.failures[0].advice
    assert [(each.name, each.because) for each in result.stages if each.status == "skipped"] == [
        (name, "environment") for name in ("functions", "rows", "preprocess", "samples")
    ]


def test_the_confines_are_settings(ready: Machine, repo: Path) -> None:
    outside = ready.root / "x.csv"
    outside.write_text("a")
    stage(ready, repo, CODE + READING.replace("READ", f"open({str(outside)!r}).read()"))
    result = parse(ready, repo)
    assert [each.kind for each in result.warnings] == ["file_outside"]
    ready.git(repo, "config", "datasets.volumes", "/nowhere")
    assert {each.kind for each in parse(ready, repo, code=5).failures} == {"outside_volumes"}
    ready.git(repo, "config", "--add", "datasets.volumes", ready.root)
    assert parse(ready, repo).valid

    stage(ready, repo, CODE + READING.replace("READ", "[bytearray(b'x') * (300 << 20), __import__('time').sleep(9)]"))
    ready.git(repo, "config", "datasets.memoryLimit", "150m")
    found, other = parse(ready, repo, code=5).failures
    assert (found.kind, found.function, found.split) == ("out_of_memory", "metadata m", "training")
    assert (other.kind, other.function, other.split) == ("out_of_memory", "metadata m", "validation")
    assert found.advice.endswith("git config datasets.memoryLimit 300m")
    stage(ready, repo, CODE + READING.replace("READ", "__import__('time').sleep(99)"))
    ready.git(repo, "config", "datasets.parseTimeout", "1")
    found = failure(ready, repo)
    assert (found.kind, found.where) == ("hang", f"index.py:{LINE}, in m")
    ready.git(repo, "config", "datasets.parseTimeout", "soon")
    done: Done = ready.gd(repo, "parse", check=False)
    assert (done.returncode, "datasets.parseTimeout is 'soon'" in done.stderr) == (4, True)


def test_what_a_sparse_checkout_leaves_out_is_there(ready: Machine, repo: Path) -> None:
    stage(ready, repo, "a", "apart/labels.csv")
    stage(ready, repo, CODE + READING.replace("READ", '(HERE / "apart/labels.csv").read_text()'))
    ready.git(repo, "commit", "-qm", "labels")
    ready.git(repo, "update-index", "-q", "--refresh")  # what may be racy, git leaves in place
    ready.git(repo, "sparse-checkout", "set", "a")
    assert not (repo / "apart").exists()
    assert parse(ready, repo).valid


def test_what_is_not_staged_does_not_count_and_is_told(ready: Machine, repo: Path) -> None:
    (repo / "index.py").write_text("1 / 0\n")
    done = ready.gd(repo, "parse")
    assert "warning: index.py has changes that are not staged; the staged text counts" in done.stderr


def test_a_handler_cannot_harm_the_files_of_rows(ready: Machine, repo: Path) -> None:
    ready.git(repo, "commit", "-qm", "rows")
    stage(ready, repo, CODE + READING.replace("READ", "[open(row.a, 'w').write('harm')]"))
    found = parse(ready, repo, code=5).failures
    assert {each.kind for each in found} == {"changed_file"}
    ready.git(repo, "checkout", "-q", "HEAD", "index.py")
    assert is_clean(ready, repo)


def test_a_toy_takes_less_than_a_second(ready: Machine, repo: Path) -> None:
    ready.git(repo, "commit", "-qm", "rows")
    times = []
    while not times or (min(times) > 1 and len(times) < 5):  # others may use the machine, too
        began = time.monotonic()
        ready.gd(repo, "parse")
        times.append(time.monotonic() - began)
    assert min(times) <= 1
