from __future__ import annotations

import pytest

from gds_lfs.dataset.fingerprint import Source, agreement

INDEX = '''
from __future__ import annotations
import numpy as np
from helpers import thing
import tools.paths as paths

SIZE = 3
CONFIG = {"a": SIZE}
CONFIG.update(b=2.5)

def helper(x):
    """Doc."""
    # comment
    return f"{x!r:>{CONFIG['a']}} a" "b" f"{x=} é \\u0301" + str(np.ones(3))

@dataset
class Data:
    """Doc."""
    image: File[png]
    _scale = 2

    @staticmethod
    def _half(x):
        return x / Data._scale

    @ingest
    def get():
        return [helper(3)]

    def size(image: File[png]) -> int:
        match image:
            case {"x": 1, **rest}:
                return -1
        return 99999999999999999999999 if thing(image) else 3j

    def half(size: int) -> float:
        return Data._half(size)

if __name__ == "__main__":
    print(Data)
'''

SOURCES = {
    "index.py": INDEX,
    "helpers.py": "from tools import deep\ndef thing(x): return 1\n",
    "tools/__init__.py": "",
    "tools/deep.py": "from . import deeper\n",
    "tools/deeper.py": "X = 1\n",
    "tools/paths.py": "P = 1\n",
    "unused.py": "U = 1\n",
}

FUNCTIONS = ("get", "size", "half")


def prints(sources: dict[str, str] | None = None) -> dict[str, str]:
    sources = sources or SOURCES
    source = Source(sources, "index.py")
    return {**{name: source.function("Data", name) for name in FUNCTIONS}, "agreement": agreement(sources, "index.py")}


def changed_by(old: str, new: str, path: str = "index.py") -> set[str]:
    assert old in SOURCES[path]
    before, after = prints(), prints({**SOURCES, path: SOURCES[path].replace(old, new)})
    return {name for name in before if before[name] != after[name]}


def test_golden() -> None:
    # The same in every version of Python: a change here computes everything anew for everyone.
    assert prints() == {
        "get": "da0284b51d60873df51aa33042812643fe3f6adf439898273130ceccdf78b508",
        "size": "0c0a9519f8d27f344b55f782864b257a070b0d5675ef90c3853664005198ccd5",
        "half": "fd397e3638e15d5e01aeda3bc39ea5042b5255246db12a24f7391db610914cec",
        "agreement": "3f53767c3202b703d4af680f3354e4605949b14ac9764ab074998599230b0b16",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# comment", "# another"),
        ('    """Doc."""\n    # comment', '    "Else."\n    # comment'),
        ('    """Doc."""\n    image', "    image"),
        ("return [helper(3)]", "return [ helper( 3 ), ]"),
        ("print(Data)", "print(3)"),
        ("-1", "(-1)"),
        ("""} a" "b" f"{x=}""", """} ab{x=}"""),
    ],
)
def test_looks_do_not_count(old: str, new: str) -> None:
    assert changed_by(old, new) == set()


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("index.py", "return -1", "return -2", {"size", "agreement"}),
        ("index.py", "helper(3)", "helper(4)", {"get", "agreement"}),
        ("index.py", "SIZE = 3", "SIZE = 4", {"get", "agreement"}),
        ("index.py", "b=2.5", "b=2.25", {"get", "agreement"}),
        ("index.py", "import numpy as np", "import cupy as np", {"get", "agreement"}),
        ("index.py", "_scale = 2", "_scale = 3", {"half", "agreement"}),
        ("index.py", "x / Data", "x // Data", {"half", "agreement"}),
        ("index.py", "(image: File[png]) -> int", "(image: File) -> float", {"agreement"}),
        ("index.py", "    image: File[png]\n", "    image: File[jpg]\n", {"agreement"}),
        ("index.py", "@ingest\n", "@ingest()\n", {"agreement"}),
        ("helpers.py", "return 1", "return 2", {"size", "agreement"}),
        ("helpers.py", "def thing(x)", "def  thing(x)  ", set()),
        ("tools/deeper.py", "X = 1", "X = 2", {"size", "agreement"}),
        ("tools/paths.py", "P = 1", "P = 2", {"agreement"}),
        ("unused.py", "U = 1", "U = 2", set()),
    ],
)
def test_what_counts(path: str, old: str, new: str, changed: set[str]) -> None:
    assert changed_by(old, new, path) == changed


def test_a_rename_alone_computes_the_same() -> None:
    renamed = INDEX.replace("def size(", "def extent(").replace("(size: int)", "(extent: int)")
    assert Source({**SOURCES, "index.py": renamed}, "index.py").function("Data", "extent") == prints()["size"]


def test_moving_definitions_changes_no_function() -> None:
    moved = INDEX.replace("SIZE = 3\n", "").replace("def helper", "SIZE = 3\ndef helper")
    after = prints({**SOURCES, "index.py": moved})
    assert {name for name in FUNCTIONS if prints()[name] != after[name]} == set()


def test_the_order_of_statements_that_change_one_name_counts() -> None:
    text = "X = 1\nX = 2\nclass D:\n    def f(a) -> int: return X\n"
    other = "X = 2\nX = 1\nclass D:\n    def f(a) -> int: return X\n"
    assert Source({"i.py": text}, "i.py").function("D", "f") != Source({"i.py": other}, "i.py").function("D", "f")


def test_names_bound_in_blocks_and_by_global() -> None:
    text = """
try:
    import fast as lib
except ImportError:
    import slow as lib
def load():
    global MODEL
    MODEL = 1
load()
class D:
    def a(x) -> int: return lib
    def b(x) -> int: return MODEL
"""
    before = Source({"i.py": text}, "i.py")
    slower = Source({"i.py": text.replace("slow", "slower")}, "i.py")
    other_model = Source({"i.py": text.replace("MODEL = 1", "MODEL = 2")}, "i.py")
    assert before.function("D", "a") != slower.function("D", "a")
    assert before.function("D", "b") == slower.function("D", "b")
    assert before.function("D", "b") != other_model.function("D", "b")


def test_parameters_and_neighbouring_fields_are_not_followed() -> None:
    text = "class D:\n    def a(x) -> int: return 1\n    def b(a) -> int: return a\n"
    changed = text.replace("return 1", "return 2")
    one, two = Source({"i.py": text}, "i.py"), Source({"i.py": changed}, "i.py")
    assert one.function("D", "b") == two.function("D", "b")


def test_defaults_see_the_class() -> None:
    text = "class D:\n    _n = 1\n    @ingest\n    def get(n=_n): return n\n"
    one, two = Source({"i.py": text}, "i.py"), Source({"i.py": text.replace("= 1", "= 2")}, "i.py")
    assert one.function("D", "get") != two.function("D", "get")


def test_star_imports_of_neighbours_count() -> None:
    text = "from helpers import *\nclass D:\n    def a(x) -> int: return f(x)\n"
    one = Source({"i.py": text, "helpers.py": "def f(x): return 1"}, "i.py")
    two = Source({"i.py": text, "helpers.py": "def f(x): return 2"}, "i.py")
    assert one.function("D", "a") != two.function("D", "a")


def test_neighbours_are_those_beside_the_entry_and_those_at_the_root() -> None:
    sources = {"sets/index.py": "import a, b", "sets/a.py": "1", "b.py": "1", "sets/c.py": "1"}
    before = agreement(sources, "sets/index.py")
    assert agreement({**sources, "sets/a.py": "2"}, "sets/index.py") != before
    assert agreement({**sources, "b.py": "2"}, "sets/index.py") != before
    assert agreement({**sources, "sets/c.py": "2"}, "sets/index.py") == before


def test_text_that_does_not_parse_counts_as_it_is() -> None:
    assert agreement({"index.py": "x ="}, "index.py") != agreement({"index.py": "x = "}, "index.py")
    broken = {"index.py": "import helpers", "helpers.py": "x ="}
    assert agreement(broken, "index.py") != agreement({**broken, "helpers.py": "y ="}, "index.py")


def test_long_chains_do_not_exhaust_the_stack() -> None:
    text = "class D:\n    def a(x) -> int: return " + " + ".join(["x"] * 900) + "\n"
    assert len(Source({"i.py": text}, "i.py").function("D", "a")) == 64


def test_a_byte_order_mark_is_no_code() -> None:
    assert agreement({"i.py": "\ufeffx = 1"}, "i.py") == agreement({"i.py": "x = 1"}, "i.py")
