"""The adapter with a stand-in for code-loader that has what is used of it (integration/parse runs the real one)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[3]

CODE_LOADER = {
    "__init__.py": """
from code_loader.mixpanel_tracker import track
from code_loader.loader import LeapLoader, leap_binder
track("import")
""",
    "mixpanel_tracker.py": "raise RuntimeError('it reports to somebody')",
    "inner_leap_binder/__init__.py": "",
    "inner_leap_binder/leapbinder_decorators.py": """
import atexit, os
from code_loader.loader import leap_binder
if os.environ.get("IS_TENSORLEAP_PLATFORM") != "true":
    atexit.register(print, "a table")
""",
    "loader.py": """
import enum, importlib.util, os, types

class State(enum.Enum):
    training = 0
    unlabeled = 3

class Response:
    def __init__(self, sample_ids, data=None):
        self.sample_ids, self.data = sample_ids, data

class Binder:
    def __init__(self):
        self.setup_container = types.SimpleNamespace(
            preprocess=None, unlabeled_data_preprocess=None, inputs=[], ground_truths=[], metadata=[],
            metrics=[types.SimpleNamespace(name="default", function=print)], visualizers=[])
    def set_preprocess(self, function):
        self.setup_container.preprocess = types.SimpleNamespace(function=function)
    def set_input(self, encoder_function, name):
        def as_array(sample, response):
            return ["array of", encoder_function(sample, response)]
        self.setup_container.inputs.append(types.SimpleNamespace(name=name, function=as_array))
    def set_ground_truth(self, function, name):
        self.setup_container.ground_truths.append(types.SimpleNamespace(name=name, function=function))
    def add_custom_metric(self, function, name):
        self.setup_container.metrics.append(types.SimpleNamespace(name=name, function=function))
    def get_preprocess_result(self):
        results = dict(zip(State, self.setup_container.preprocess.function()))
        if len(results) == 1:
            raise Exception("Validation data is required")
        return results

leap_binder = Binder()

class LeapLoader:
    def __init__(self, root, entry):
        self.file = os.path.join(root, entry)
    def evaluate_module(self):
        print("executed with", os.environ.get("__MAPPING_RUNTIME_MODE__"), os.environ.get("IS_TENSORLEAP_PLATFORM"))
        spec = importlib.util.spec_from_file_location("entry", self.file)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    def exec_script(self):
        self.evaluate_module()
    def check_dataset(self):
        leap_binder.get_preprocess_result()
        bad = types.SimpleNamespace(name="image", is_passed=False, display={
            "training": "ValueError('no') in file a.py, line_number:  -1\\nStacktrace:\\nlong"})
        return types.SimpleNamespace(is_valid=False, payloads=[bad], general_error=None)
""",
}

SCRIPT = """
from code_loader import leap_binder
from code_loader.loader import Response

def preprocess():
    print("preprocess runs")
    return [Response(["a", "b"], 1), Response([0, 1, 2])]

def image(sample, response):
    return None if sample == "b" else sample

leap_binder.set_preprocess(preprocess)
leap_binder.set_input(image, "image")
leap_binder.set_ground_truth(lambda sample, response: response.data, "label")
leap_binder.add_custom_metric(image, "metric")
"""

RUN = """
import json, sys
sys.path[:] = [{package!r}, {loader!r}, *filter(None, sys.path)]
from gds_lfs.dataset.parse.leap import LeapProgram
from gds_lfs.dataset.parse.program import ProgramError
found = {{}}
try:
    program = LeapProgram({root!r}, "leap_binder.py")
    functions = program.load()
    found["functions"] = [list(each) for each in functions]
    splits = program.splits()
    found["splits"] = [[each.name, list(each.ids), isinstance(each.ids, range), list(each.without)] for each in splits]
    image = next(each for each in functions if each.kind == "input")
    found["values"] = [program.value(image, splits[0], position) for position in (0, 1)]
except ProgramError as error:
    found["error"] = [str(error), error.kind, error.where]
found["notes"] = program.notes()
print(json.dumps(found), file=sys.stderr)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in CODE_LOADER.items():
        path = tmp_path / "site" / "code_loader" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    info = tmp_path / "site" / "code_loader-1.0.200.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: code-loader\nVersion: 1.0.200\n")
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def run(root: Path, script: str) -> tuple[dict[str, Any], str]:
    """What the adapter says of a script, and what was printed."""
    (root / "leap_binder.py").write_text(script)
    text = RUN.format(package=str(PACKAGE), loader=str(root.parent / "site"), root=str(root))
    environment = {name: value for name, value in os.environ.items() if name != "IS_TENSORLEAP_PLATFORM"}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stderr), done.stdout


def test_what_is_registered_is_listed_and_called_as_it_was_written(root: Path) -> None:
    found, printed = run(root, SCRIPT)
    assert found["functions"] == [
        ["preprocess", "preprocess", "leap_binder.py:5", ""],
        ["input", "image", "leap_binder.py:9", ""],
        ["ground_truth", "label", "leap_binder.py:14", ""],
        ["metric", "metric", "leap_binder.py:9", ""],
    ]
    assert found["splits"] == [["training", ["a", "b"], False, []], ["unlabeled", [0, 1, 2], True, ["ground_truth"]]]
    assert found["values"] == ["a", None]
    assert printed == "executed with TRUE None\npreprocess runs\n"
    assert found["notes"] == [
        "no integration test is registered; the Tensorleap platform asks for one at a push",
        "code-loader 1.0.200: check_dataset() fails: image: ValueError('no')",
    ]


def test_a_result_that_code_loader_does_not_take(root: Path) -> None:
    found, printed = run(root, SCRIPT.replace(", Response([0, 1, 2])]", "]"))
    assert found["error"] == ["Validation data is required", "preprocess_result", "leap_binder.py:5"]
    assert printed.count("preprocess runs") == 1


def test_a_result_that_is_none(root: Path) -> None:
    found, _ = run(root, SCRIPT.replace("    return [", "    [", 1))
    assert found["error"][:2] == [
        "preprocess returned None; it returns a list of PreprocessResponse",
        "preprocess_result",
    ]


def test_a_version_that_was_not_tried_is_told(root: Path) -> None:
    (root.parent / "site" / "code_loader-1.0.200.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: code-loader\nVersion: 1.0.150\n"
    )
    found, _ = run(root, SCRIPT)
    assert found["notes"][0] == "code-loader 1.0.150 is not one that was tested (>=1.0.180,<=1.0.214)"


def test_modules_that_installed_ones_hide_are_told(root: Path) -> None:
    for folder in (root, root.parent / "site"):
        (folder / "helper.py").write_text("mine = 1")
    (root / "own.py").write_text("mine = 1")
    found, _ = run(root, "import helper\n" + SCRIPT)
    assert found["notes"][0].partition(" in the folder is hidden by ")[0] == "helper.py"
