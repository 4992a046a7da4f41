"""Tensorleap integrations under parse, run by real code-loaders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from leap_machines import LOADERS, LeapMachine

YAML = "entryFile: leap_integration.py\n"
HEAD = """\
import numpy as np
from code_loader.contract.datasetclasses import PreprocessResponse
from code_loader.contract.enums import DataStateType
from code_loader.inner_leap_binder.leapbinder_decorators import *
"""
PREPROCESS = """
@tensorleap_preprocess()
def preprocess():
    print("preprocess runs")
    return [PreprocessResponse(sample_ids=[name + "1", name + "2"], data=name, state=getattr(DataStateType, name))
            for name in ("training", "validation")]
"""
INPUT = """
@tensorleap_input_encoder("image")
def image(name, response):
    return np.zeros((4, 4, 1), dtype=np.float32)
"""


def parse(machine: LeapMachine, folder: str = ".") -> dict[str, Any]:
    """The result of a parse of what is staged; nothing that ran was left, or wrote outside."""
    done = machine.gd(machine.work, "parse", "--json", folder, check=False)
    result: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if result["valid"] else 5), done.stderr
    assert not (machine.home / ".tensorleap").exists()
    return result


@pytest.fixture
def machine(tmp_path: Path, newest: Path) -> LeapMachine:
    return LeapMachine(tmp_path, newest)


def parse_script(machine: LeapMachine, text: str, **more: str) -> dict[str, Any]:
    machine.add({"leap.yaml": YAML, "leap_integration.py": HEAD + text, **more})
    return parse(machine)


def failures(result: dict[str, Any]) -> list[tuple[str, str, str | None, str | None]]:
    return [(each["kind"], each["where"], each["function"], each["split"]) for each in result["failures"]]


def printed(result: dict[str, Any], text: str) -> int:
    return sum(stage["output"].count(text) for stage in result["stages"])


@pytest.mark.parametrize(
    ("name", "said", "functions", "splits"),
    [
        (
            "legacy",
            "preprocess of the legacy script",
            {
                "preprocess": ["preprocess_func", "unlabeled_preprocess_func"],
                "input": ["image"],
                "ground_truth": ["classes"],
                "metadata": ["brightness", "index"],
                "prediction": ["classes"],
                "visualizer": ["bars"],
            },
            {"training": 40, "validation": 10, "unlabeled": 5},
        ),
        (
            "decorators",
            "preprocess of the decorated script",
            {
                "preprocess": ["preprocess_func"],
                "input": ["signal"],
                "ground_truth": ["kind"],
                "metadata": ["height", "buoy"],
                "metric": ["distance"],
                "loss": ["squares"],
                "visualizer": ["wave"],
            },
            {"training": 16, "validation": 4, "test": 4},
        ),
        (
            "integration_test",
            "preprocess of the integration test",
            {
                "preprocess": ["preprocess_func_leap"],
                "input": ["point"],
                "ground_truth": ["inside"],
                "metadata": ["radius"],
                "prediction": ["inside"],
                "loss": ["squares"],
                "integration_test": ["integration_test"],
            },
            {"training": 50, "validation": 10},
        ),
    ],
)
def test_scripts_load_unmodified(
    tmp_path: Path, loader: Path, name: str, said: str, functions: dict[str, list[str]], splits: dict[str, int]
) -> None:
    machine = LeapMachine(tmp_path, loader)
    machine.add_script(name)
    result = parse(machine, name)
    assert result["failures"] == []
    assert result["warnings"] == []
    found: dict[str, list[str]] = {}
    for function in result["functions"]:
        found.setdefault(function["kind"], []).append(function["name"])
        assert function["where"].startswith("leap_")
    assert found == functions
    assert {split["name"]: split["length"] for split in result["splits"]} == splits
    assert printed(result, said) == 1, "preprocess runs once, whatever code-loader asks for"
    called = {kind: found.get(kind, []) for kind in ("input", "ground_truth", "metadata")}
    asked = {(each["kind"], each["name"], each["split"]) for each in result["samples"]}
    assert asked == {
        (kind, each, split)
        for kind, names in called.items()
        for each in names
        for split in splits
        if (kind, split) != ("ground_truth", "unlabeled")
    }
    for sample in result["samples"]:
        assert sample["value"]["type"] in ("ndarray", "float", "int", "dict")
    assert result["notes"][-1].endswith("check_dataset() finds the dataset valid")


def test_the_range_that_is_promised_is_the_one_that_is_tested(loader: Path) -> None:
    command = [loader, "-c", "from importlib.metadata import version; print(version('code-loader'))"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert tuple(map(int, version.split("."))) in LOADERS.values()


def test_include_and_exclude_are_honoured(machine: LeapMachine) -> None:
    machine.add_script("decorators")
    assert sorted(file["path"] for file in parse(machine, "decorators")["files"]) == [
        "decorators/data/waves.csv",
        "decorators/leap_binder.py",
        "decorators/requirements.txt",
        "decorators/waves.py",
    ]
    machine.add({"decorators/leap.yaml": "entryFile: leap_binder.py\ninclude: ['*.py', data, nothing/*]\n"})
    result = parse(machine, "decorators")
    ((kind, where, _, _),) = failures(result)
    assert kind == "file_not_included"
    assert where == "waves.py:8, in read_waves"
    assert "data/waves.csv" in result["failures"][0]["advice"]
    assert [warning["text"] for warning in result["warnings"] if warning["kind"] == "pattern"] == [
        "include: data matches no file: it is a folder; data/** matches what is in it",
        "include: nothing/* matches no file",
    ]


def test_one_failing_handler_hides_no_other(machine: LeapMachine) -> None:
    result = parse_script(
        machine,
        PREPROCESS
        + """
@tensorleap_input_encoder("none")
def none(name, response):
    return None

@tensorleap_input_encoder("double")
def double(name, response):
    return np.zeros(3)

@tensorleap_gt_encoder("missing")
def missing(name, response):
    return np.loadtxt("labels.csv")

@tensorleap_metadata("broken")
def broken(name, response):
    return {}[name] if response.data == "validation" else 1
""",
    )
    found = failures(result)
    assert {(kind, function, split) for kind, _, function, split in found} == {
        ("none_value", "input none", "training"),
        ("none_value", "input none", "validation"),
        ("wrong_type", "input double", "training"),
        ("wrong_type", "input double", "validation"),
        ("file_not_found", "ground truth missing", "training"),
        ("file_not_found", "ground truth missing", "validation"),
        ("exception_in_metadata", "metadata broken", "validation"),
    }
    assert ("leap_integration.py:22, in missing") in {where for _, where, _, _ in found}
    assert printed(result, "preprocess runs") == 1


def test_a_failing_preprocess_runs_once_and_is_told_with_its_line(machine: LeapMachine) -> None:
    text = "@tensorleap_preprocess()\ndef preprocess():\n    print('preprocess runs')\n    return [][0]\n" + INPUT
    result = parse_script(machine, text)
    assert failures(result) == [
        ("exception_in_preprocess", "leap_integration.py:8, in preprocess", "preprocess preprocess", None)
    ]
    assert [(stage["name"], stage["status"], stage["because"]) for stage in result["stages"][-2:]] == [
        ("preprocess", "failed", None),
        ("samples", "skipped", "preprocess"),
    ]
    assert [function["name"] for function in result["functions"]] == ["preprocess", "image"]
    assert printed(result, "preprocess runs") == 1


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("    pass", "preprocess returned None; it returns a list of PreprocessResponse"),
        (
            "    return [PreprocessResponse(length=2, data=None, state=DataStateType.training)]",
            "Validation data is required",
        ),
        ("    return [PreprocessResponse(length=2, state=DataStateType.test)] * 2", "Duplicate state"),
    ],
)
def test_what_code_loader_would_not_take_from_preprocess(machine: LeapMachine, body: str, text: str) -> None:
    result = parse_script(machine, f"@tensorleap_preprocess()\ndef preprocess():\n{body}\n{INPUT}")
    (failure,) = result["failures"]
    assert failure["kind"] == "preprocess_result"
    assert text in failure["text"]
    assert failure["where"] == "leap_integration.py:5"


def test_a_script_without_preprocess(machine: LeapMachine) -> None:
    result = parse_script(machine, INPUT)
    assert failures(result) == [("preprocess_result", "leap_integration.py", None, None)]
    assert "leap_binder.set_preprocess" in result["failures"][0]["advice"]


def test_an_integration_test_that_cannot_be_wired(machine: LeapMachine) -> None:
    test = "\n@tensorleap_integration_test()\ndef check(name, response):\n    value = image(name, response) + 1\n"
    result = parse_script(machine, PREPROCESS + INPUT + test)
    assert failures(result) == [("integration_test", "leap_integration.py:18, in check", None, None)]
    assert "TypeError: unsupported operand" in result["failures"][0]["text"]
    assert result["notes"][-1].endswith("check_dataset() fails: the integration test")
    assert len(result["samples"]) == 2
    assert printed(result, "preprocess runs") == 1


def test_grouped_samples(machine: LeapMachine) -> None:
    result = parse_script(
        machine,
        """
@tensorleap_preprocess()
def preprocess():
    return [PreprocessResponse(sample_ids=[[start, start + 1], [start + 2]], data=None, state=state)
            for start, state in ((0, DataStateType.training), (10, DataStateType.validation))]

@tensorleap_input_encoder("image")
def image(numbers, response):
    return [np.full(3, number, dtype=np.float32) for number in numbers]
""",
    )
    assert result["failures"] == []
    assert {split["name"]: split["length"] for split in result["splits"]} == {"training": 3, "validation": 3}
    assert [(sample["id"], sample["value"]["max"]) for sample in result["samples"]] == [("0", 0.0), ("10", 10.0)]


def test_a_module_of_the_folder_that_an_installed_one_hides_is_told(machine: LeapMachine) -> None:
    result = parse_script(machine, "import requests\n" + PREPROCESS + INPUT, **{"requests.py": "mine = 1\n"})
    assert result["valid"]
    assert [note for note in result["notes"] if note.startswith("requests.py in the folder is hidden by ")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("include: []\n", "entryFile is missing"),
        ("entryFile: other.py\n", "entryFile: there is no other.py"),
        (YAML + "pythonVersion: 3.10\n", "pythonVersion is the number 3.1"),
    ],
)
def test_a_leap_yaml_that_cannot_be_used(machine: LeapMachine, text: str, said: str) -> None:
    machine.add({"leap.yaml": text, "leap_integration.py": ""})
    result = parse(machine)
    assert result["failures"][0]["where"] == "leap.yaml"
    assert result["failures"][0]["text"].startswith(said)
    assert [stage["status"] for stage in result["stages"]] == ["failed"] + ["skipped"] * 4


def test_another_python_than_leap_yaml_asks_for(machine: LeapMachine) -> None:
    machine.add({"leap.yaml": YAML + "pythonVersion: py36\n", "leap_integration.py": HEAD})
    (failure,) = parse(machine)["failures"]
    assert failure["kind"] == "wrong_python"
    assert failure["stage"] == "environment"


def test_a_python_without_code_loader(tmp_path: Path) -> None:
    machine = LeapMachine(tmp_path, None)
    machine.add_script("legacy")
    (failure,) = parse(machine, "legacy")["failures"]
    assert failure["kind"] == "module_not_found"
    assert failure["text"].startswith("code-loader is not installed for ")
    assert "datasets.dynamicDependencies true" in failure["advice"]


@pytest.mark.usefixtures("index")
def test_dynamic_dependencies_make_an_environment_once(tmp_path: Path) -> None:
    machine = LeapMachine(tmp_path, None)
    machine.git(machine.work, "config", "datasets.dynamicDependencies", "true")
    machine.add_script("integration_test")
    first, second = parse(machine, "integration_test"), parse(machine, "integration_test")
    assert first["valid"]
    assert second["valid"]
    assert first["python"] == second["python"]
    assert Path(first["python"]).is_relative_to(tmp_path / "cache" / "venvs")
    assert printed(second, "code-loader==") == 0
    machine.add({"integration_test/requirements.txt": "numpy==1.21.0\nnumpy==1.22.0\n"})
    (failure,) = parse(machine, "integration_test")["failures"]
    assert failure["kind"] == "conflict"
    assert failure["text"] == "numpy==1.21.0 and numpy==1.22.0 exclude each other"
    machine.git(machine.work, "rm", "-qf", "integration_test/requirements.txt")
    (failure,) = parse(machine, "integration_test")["failures"]
    assert failure["kind"] == "missing_requirements"
