"""What code-loader's binder holds: the user's functions, inside what it and functools made of them.

Standard library only, and Python 3.8: the user's interpreter runs it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from gds_lfs.dataset.parse.program import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DECLARED = {"float": "float", "int": "int", "string": "str", "boolean": "bool"}


class Handler(NamedTuple):
    """A registered function: what to `call`, the function as it is `written`, and the type its values must have."""

    call: Callable[..., Any]
    written: object
    declared: str

    @classmethod
    def of(cls, registered: Any) -> Handler:
        """What the binder holds makes arrays of whatever comes: None and lists would not be seen."""
        call = _enclosed(registered.function, "encoder_function") or registered.function
        own = written(call)
        if hasattr(registered, "metadata_type"):
            kind = registered.metadata_type
            return cls(call, own, _DECLARED.get(getattr(kind, "value", ""), ""))
        # A decorator promises float32, and refuses others when it is tried; of a leap_binder call nothing is said.
        return cls(call, own, "float32" if is_loaders(call) else "")


class Once:
    """A function that runs the first time it is called; what it returned is the answer to every other call."""

    def __init__(self, function: Callable[[], Any], described: str, kind: type) -> None:
        self.function = function
        self._described = described
        self._kind = kind
        self._results: list[Any] = []

    def __call__(self) -> Any:
        if not self._results:
            result = self.function()
            if not isinstance(result, self._kind) or (result is None and self._kind is object):
                what = "None" if result is None else type(result).__name__
                raise ProgramError(
                    f"{name_of(self.function)} returned {what}; it returns {self._described}",
                    "preprocess_result",
                    "",
                    "return [PreprocessResponse(sample_ids=…, data=…, state=DataStateType.training), …]",
                )
            self._results.append(result)
        return self._results[0]


def _enclosed(function: object, *names: str) -> Callable[..., Any] | None:
    """The function that another one was made around, under one of these names."""
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(code.co_freevars if code is not None else (), cells):  # noqa: B905 - Python 3.8
        if name in names and callable(cell.cell_contents):
            found: Callable[..., Any] = cell.cell_contents
            return found
    return None


def written(function: object) -> object:
    """The user's own function inside what code-loader and functools made of it."""
    for inner in _layers(function):
        function = inner
    return function


def _layers(function: object) -> Iterator[object]:
    while True:
        if isinstance(function, Once):
            function = function.function
        elif hasattr(function, "__wrapped__"):
            function = inspect.unwrap(function)  # type: ignore[arg-type]
        elif hasattr(function, "func"):
            function = function.func
        else:
            if not is_loaders(function):
                return
            inner = _enclosed(function, "encoder_function", "user_function", "integration_test_function", "function")
            if inner is None:
                return
            function = inner
        yield function


def is_loaders(function: object) -> bool:
    """Whether code-loader wrote this function."""
    code = getattr(function, "__code__", None)
    return code is not None and "code_loader" in code.co_filename.replace("\\", "/").split("/")


def name_of(function: object) -> str:
    """The name of the user's own function."""
    return str(getattr(written(function), "__name__", function))


def listed_name(registered: object) -> str:
    """The name of a metric, a loss, a visualizer or a prediction."""
    for holder in ("metric_handler_data", "custom_loss_handler_data", "visualizer_handler_data"):
        registered = getattr(registered, holder, registered)
    return str(getattr(registered, "name", registered))
