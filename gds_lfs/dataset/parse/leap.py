"""A Tensorleap integration script as a program to be parsed, run unmodified with the user's own code-loader.

The script registers functions with code-loader's binder, by `leap_binder` calls or by decorators. They are taken from
there and called as the platform calls them. What the platform does beyond that (its own checks, and the integration
test in the mode that wires functions to the model) is asked of code-loader itself at the end, as its verdict; what
preprocess returned is kept, so that it runs once, whoever asks for it.

Standard library only, and Python 3.8: the user's interpreter runs it.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

from gds_lfs.dataset.parse.loader import NAME, RANGE, import_code_loader
from gds_lfs.dataset.parse.place import own_frames, own_path
from gds_lfs.dataset.parse.program import (
    GROUND_TRUTH,
    INPUT,
    METADATA,
    PREPROCESS,
    Function,
    ProgramError,
    Split,
)
from gds_lfs.dataset.parse.registered import Handler, Once, is_loaders, listed_name, name_of, written

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAPPING = "__MAPPING_RUNTIME_MODE__"
_UNLABELED = "unlabeled"
_LISTED = (
    ("prediction_types", "prediction"),
    ("metrics", "metric"),
    ("custom_loss_handlers", "loss"),
    ("visualizers", "visualizer"),
)
"""What is listed and not called: attributes of the binder's container, and their kinds."""


class LeapProgram:
    """The script `entry`, a path relative to the folder `root`, which is absolute."""

    def __init__(self, root: str, entry: str) -> None:
        self._root = root
        self._entry = entry
        self._installed: Any = None
        self._loader: Any = None
        self._handlers: dict[tuple[str, str], Handler] = {}
        self._responses: dict[str, Any] = {}
        self._is_wired = True

    def load(self) -> list[Function]:
        """Raises ProgramError where there is no code-loader or no preprocess, and whatever the script raises."""
        self._import_loader()
        there = {attribute: len(getattr(self._container, attribute, ())) for attribute, _ in _LISTED}
        # While functions are registered, code-loader's decorators answer calls without running anything.
        os.environ[_MAPPING] = "TRUE"
        try:
            self._loader.evaluate_module()
        finally:
            os.environ.pop(_MAPPING, None)
        container = self._container
        preprocess = container.preprocess
        if preprocess is None:
            raise ProgramError(
                "the script registers no preprocess",
                "preprocess_result",
                self._entry,
                "decorate a function with @tensorleap_preprocess(), or call leap_binder.set_preprocess(function)",
            )
        found = [Function(PREPROCESS, name_of(preprocess.function), self._where(preprocess.function))]
        preprocess.function = Once(preprocess.function, "a list of PreprocessResponse", list)
        unlabeled = container.unlabeled_data_preprocess
        if unlabeled is not None:
            found.append(Function(PREPROCESS, name_of(unlabeled.function), self._where(unlabeled.function)))
            unlabeled.function = Once(unlabeled.function, "a PreprocessResponse", object)
        for kind, handlers in (
            (INPUT, container.inputs),
            (GROUND_TRUTH, container.ground_truths),
            (METADATA, container.metadata),
        ):
            for registered in handlers:
                handler = Handler.of(registered)
                if is_loaders(handler.written) and registered.name.startswith("builtin_"):
                    continue  # such as one that counts instances
                self._handlers[kind, registered.name] = handler
                found.append(Function(kind, registered.name, self._where(handler.written), handler.declared))
        for attribute, kind in _LISTED:
            for registered in getattr(container, attribute, ())[there[attribute] :]:
                found.append(Function(kind, listed_name(registered), self._listed_where(registered)))
        test = self._integration_test
        if test is not None:
            found.append(Function("integration_test", name_of(test), self._where(test)))
        return found

    def splits(self) -> list[Split]:
        """Raises ProgramError for what code-loader finds wrong, and whatever the script raises."""
        try:
            results = self._installed.binder.get_preprocess_result()
        except Exception as error:
            if isinstance(error, ProgramError) or own_frames(error, self._root):
                raise
            raise ProgramError(
                str(error) if type(error) is Exception else f"{type(error).__name__}: {error}",
                "preprocess_result",
                self._where(self._container.preprocess.function.function),
                "return a list of PreprocessResponse, one with state=DataStateType.training and one with validation",
            ) from error
        self._responses = {state.name: response for state, response in results.items()}
        return [
            Split(name, _ids(response), (GROUND_TRUTH,) if name == _UNLABELED else ())
            for name, response in self._responses.items()
        ]

    def value(self, function: Function, split: Split, position: int) -> object:
        """Raises whatever the script raises."""
        handler = self._handlers[function.kind, function.name]
        response = self._responses[split.name]
        sample = split.ids[position]
        if not getattr(response, "is_grouped", False):
            return handler.call(sample, response)
        group = next(each for each in response.groups if sample in each)
        return handler.call(group, response)[group.index(sample)]

    def verify(self) -> None:
        """Raises ProgramError where the platform could not learn from the integration test what goes to the model."""
        if self._integration_test is None or not self._responses:
            return
        try:
            self._loader.exec_script()  # by now, that is the integration test, with stand-ins for all values
        except Exception as error:
            self._is_wired = False
            cause = error.__cause__ or error
            frames = own_frames(cause, self._root)
            raise ProgramError(
                f"the integration test cannot be wired to a model: {type(cause).__name__}: {cause}",
                "integration_test",
                frames[-1] if frames else self._where(self._integration_test),
                "it may only call decorated functions and the model: what else it does belongs into one of them",
            ) from cause

    def notes(self) -> list[str]:
        """code-loader's own verdict, and what else is to be known."""
        name = f"{NAME} {self._installed.version}"
        lines = [] if self._installed.was_tested else [f"{name} is not one that was tested ({RANGE})"]
        lines += self._shadowed()
        if not self._responses:
            return lines  # preprocess would run again
        if self._integration_test is None:
            lines.append("no integration test is registered; the Tensorleap platform asks for one at a push")
        verdict = f"{name}: check_dataset()"
        if not self._is_wired:
            return [*lines, f"{verdict} fails: the integration test"]
        result = self._loader.check_dataset()
        if result.is_valid:
            return [*lines, f"{verdict} finds the dataset valid"]
        said = [
            f"{each.name}: {_first_line(' '.join(each.display.values()))}"
            for each in result.payloads
            if not each.is_passed
        ]
        if result.general_error:
            said.append(_first_line(result.general_error))
        return [*lines, *(f"{verdict} fails: {each}" for each in said)]

    @property
    def _integration_test(self) -> Any:
        return getattr(self._installed.binder, "integration_test_func", None)

    @property
    def _container(self) -> Any:
        return self._installed.binder.setup_container

    def _import_loader(self) -> None:
        self._installed = import_code_loader()
        self._loader = self._installed.leap_loader(self._root, self._entry)
        # check_dataset() executes the script anew: everything would be registered twice.
        self._loader.evaluate_module = Once(self._loader.evaluate_module, "nothing", type(None))

    def _where(self, function: object) -> str:
        code = getattr(written(function), "__code__", None)
        path = None if code is None else own_path(code.co_filename, self._root)
        return f"{path}:{code.co_firstlineno}" if path is not None and code is not None else self._entry

    def _listed_where(self, registered: object) -> str:
        function = getattr(registered, "function", None)
        return self._entry if function is None else self._where(function)

    def _shadowed(self) -> list[str]:
        """Modules of the folder that were not imported, because an installed one of the same name comes first."""
        lines = []
        for name in sorted(os.listdir(self._root)):
            module = sys.modules.get(name.partition(".")[0])
            file = getattr(module, "__file__", None)
            is_module = name.endswith(".py") or os.path.isfile(os.path.join(self._root, name, "__init__.py"))
            if is_module and name != self._entry and file and own_path(os.path.abspath(file), self._root) is None:
                lines.append(
                    f"{name} in the folder is hidden by {file}, which comes first on the platform too: rename it"
                )
        return lines


def _ids(response: Any) -> Sequence[object]:
    """The ids of a response's samples; those that code-loader makes for the instances in them are not among them."""
    instances = getattr(response, "sample_ids_to_instance_mappings", None)
    if instances:
        return list(instances)
    ids: Sequence[object] = getattr(response, "flat_sample_ids", response.sample_ids)
    return range(len(ids)) if ids == list(range(len(ids))) else ids  # they were given by their number


def _first_line(text: str) -> str:
    """The first line of an error that code-loader wrote down with its traceback."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return re.sub(r" in file [^,]*, line_number:\s*-?\d+$", "", re.sub(r"^Something went wrong\. ", "", line)).strip()
