"""What is parsed, as the engine sees it: something that loads, splits itself and gives values.

Two things are programs: a dataset's `index.py` (`own.OwnProgram`) and a Tensorleap integration (`leap.LeapProgram`,
made from the folder it stands in and the path of its entry file in that folder). A program lives in the child process,
in the user's interpreter: what implements this needs the standard library alone and takes Python 3.8 (3.10 for an
`index.py`).

The engine calls `load` once, then `splits` once, then `value` for one handler and one sample at a time, then `verify`.
Whatever the user's code raises goes through as it is: the engine finds the line. What a program finds wrong itself is a
`ProgramError`. Every call is made with the program's folder as the working directory; `sys.path` is `load`'s affair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

FIELD, INGEST, TRANSFORM, PREPROCESS = "field", "ingest", "transform", "preprocess"
INPUT, GROUND_TRUTH, METADATA = "input", "ground_truth", "metadata"

FIELDS = (FIELD, TRANSFORM)
"""The kinds that `Program.value` is asked for where there is no handler: what a row has in a field."""

HANDLERS = (INPUT, GROUND_TRUTH, METADATA)
"""The kinds of function that `Program.value` is asked for. Any other kind is listed in the report, not called."""


class Function(NamedTuple):
    """One thing that the code registers. Its `kind` is one of those above; any other word is only listed."""

    kind: str
    name: str
    where: str
    """`index.py:12`, relative to the program's folder: where the function is written (for a field, the line)."""
    declared: str = ""
    """The type that its values are declared to have: `float32`, `int`, `str`, `File[png]`. Empty when nothing says."""


class Split(NamedTuple):
    """A part of the samples. `ids` is indexed by position, lazily if that is cheaper, and its length is the split's."""

    name: str
    ids: Sequence[object]
    without: Sequence[str] = ()
    """The kinds of handler that have nothing to say of these samples: unlabeled ones have no ground truth."""


class ProgramError(Exception):
    """What a program itself finds wrong: `kind` is one of `result.KINDS`, `where` as in `Function` if that is known."""

    def __init__(self, text: str, kind: str = "wrong_type", where: str = "", advice: str = "") -> None:
        super().__init__(text)
        self.kind = kind
        self.where = where
        self.advice = advice


if TYPE_CHECKING:

    class Program(Protocol):
        """What the engine asks, in this order."""

        def load(self) -> list[Function]:
            """Import the user's code and list what it registers, in the order of the report."""

        def splits(self) -> list[Split]:
            """Run preprocess, once. The first call is the only one."""

        def value(self, function: Function, split: Split, position: int) -> object:
            """What a handler gives for the sample at this position of a split (both given as they were returned)."""

        def verify(self) -> None:
            """Look at what no single value shows, after all of them; raises like they do."""

        def notes(self) -> list[str]:
            """Lines for the end of the report, such as another loader's verdict. Asked at the very end."""
