"""Fingerprints of code: what must be computed again after an edit, and what need not.

A function's fingerprint is the SHA-256 (hex) of its syntax tree together with everything of `index.py` it refers to,
transitively, and the whole of each neighbouring module it imports. Comments, formatting, docstrings and the
annotations of its own parameters are left out; so are its name (a rename alone computes the same) and the
decorators that only mark it. Other imports count by name: a library's version is no code of the dataset.

The tree is written down in a form of our own (`syntax`), the same in every version of Python. What a name refers to
is over- rather than underestimated: it is better to compute once too often.

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import ast
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.dataset.syntax import definitions, imports, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_MARKS = {"ingest", "staticmethod", "classmethod"}
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Visit(NamedTuple):
    """A piece of syntax whose references are to be followed, and where its names are looked up."""

    node: ast.AST
    in_class: bool = False
    """Its bare names may also mean members of the dataset's class."""
    neighbour: str | None = None
    """The neighbour it belongs to, whose names are its own: only what it imports is followed."""


class Source:
    """The parsed `index.py` (`entry`, a key of `sources`) with the neighbours it may import.

    Raises SyntaxError when the entry does not parse.
    """

    def __init__(self, sources: Mapping[str, str], entry: str) -> None:
        self._sources = {path: text.removeprefix("\ufeff") for path, text in sources.items()}
        self.entry = entry
        self._tree = ast.parse(self._sources[entry], entry)
        self._globals = definitions(self._tree.body)

    def function(self, cls: str, name: str) -> str:
        """The fingerprint of the function `name` in the class `cls`; raises KeyError when there is none."""
        members = definitions(self._class(cls).body)
        node = members[name][-1]
        if not isinstance(node, _Function):
            return _Walk(self, cls, members).digest([written(node)], [_Visit(node, in_class=True)])
        marked, node.decorator_list = node.decorator_list, [each for each in node.decorator_list if not _is_mark(each)]
        try:
            text = written(node, signature=False)
            return _Walk(self, cls, members).digest([text], [_Visit(node, in_class=True)])
        finally:
            node.decorator_list = marked

    def agreement(self) -> str:
        """The fingerprint of the whole `index.py`, with all neighbours it imports."""
        return _Walk(self, None, {}).digest([written(self._tree)], [_Visit(self._tree, neighbour=self.entry)])

    def neighbours(self, node: ast.AST, path: str) -> Iterator[str]:
        """The paths of the staged files that the imports within `node`, of the file `path`, run."""
        for level, module in imports(node):
            folder = path.rpartition("/")[0]
            roots = [self.entry.rpartition("/")[0], ""]
            if level:
                roots = ["/".join(folder.split("/")[: len(folder.split("/")) - level + 1])]
            parts = module.split(".") if module else []
            for root in dict.fromkeys(roots):
                for depth in range(len(parts) + 1):
                    stem = "/".join(part for part in [root, *parts[:depth]] if part)
                    found = [f"{stem}.py", f"{stem}/__init__.py"] if depth else []
                    yield from (each for each in found if each in self._sources)

    def text(self, path: str) -> tuple[str, ast.Module | None]:
        """A neighbour's normalised text and its tree (its text as it is, and None, when it does not parse)."""
        try:
            tree = ast.parse(self._sources[path], path)
        except (SyntaxError, ValueError):
            return self._sources[path], None
        return written(tree), tree

    def globals(self, name: str) -> list[ast.stmt]:
        """The statements of the module that bind the name, or may have bound it (`from x import *`)."""
        return self._globals.get(name, [])

    def _class(self, name: str) -> ast.ClassDef:
        found = [node for node in ast.walk(self._tree) if isinstance(node, ast.ClassDef) and node.name == name]
        if not found:
            raise KeyError(name)
        return found[-1]


class _Walk:
    """Follows references from some roots and hashes all that it meets, whatever the order it stands in."""

    def __init__(self, source: Source, cls: str | None, members: Mapping[str, list[ast.stmt]]) -> None:
        self._source = source
        self._cls = cls
        self._members = members
        self._found: dict[tuple[str, str], list[str]] = {}
        self._queue: list[_Visit] = []

    def digest(self, texts: Sequence[str], roots: Sequence[_Visit]) -> str:
        self._queue = list(roots)
        while self._queue:
            visit = self._queue.pop()
            self._follow_imports(visit)
            if visit.neighbour is None:
                self._follow_names(visit)
        parts = [*texts]
        for kind, name in sorted(self._found):
            parts += [kind, name, *self._found[kind, name]]
        digest = hashlib.sha256()
        for part in parts:
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return digest.hexdigest()

    def _follow_imports(self, visit: _Visit) -> None:
        for path in self._source.neighbours(visit.node, visit.neighbour or self._source.entry):
            if ("neighbour", path) not in self._found:
                text, tree = self._source.text(path)
                self._found["neighbour", path] = [text]
                if tree is not None:
                    self._queue.append(_Visit(tree, neighbour=path))

    def _follow_names(self, visit: _Visit) -> None:
        node = visit.node
        outer: list[ast.AST] = [node]
        local: set[str] = set()
        if isinstance(node, _Function):
            # Decorators and defaults are evaluated where the function stands, its body sees its parameters first.
            outer = [*node.decorator_list, *node.args.defaults, *(each for each in node.args.kw_defaults if each)]
            local = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            for statement in node.body:
                self._refer(_names(statement, self._cls), local, in_class=False)
        for each in outer:
            self._refer(_names(each, self._cls), set(), in_class=visit.in_class)
        self._refer([("name", "*")], set(), in_class=False)

    def _refer(self, names: Iterable[tuple[str, str]], local: set[str], *, in_class: bool) -> None:
        for kind, name in names:
            if kind == "member" or (in_class and name in self._members):
                self._add("member", name, self._members.get(name, []), in_class=True)
            if kind == "name" and name not in local:
                self._add("name", name, self._source.globals(name), in_class=False)

    def _add(self, kind: str, name: str, found: list[ast.stmt], *, in_class: bool) -> None:
        if found and (kind, name) not in self._found:
            self._found[kind, name] = [written(each) for each in found]
            self._queue += [_Visit(each, in_class) for each in found]


def agreement(sources: Mapping[str, str], entry: str) -> str:
    """What a database records of the `index.py` it agrees with: comments and formatting aside, all of its code.

    Runs nothing. Where the text does not parse, it counts as it is.
    """
    try:
        return Source(sources, entry).agreement()
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(sources[entry].encode("utf-8", "surrogatepass")).hexdigest()


def _names(node: ast.AST, cls: str | None) -> Iterator[tuple[str, str]]:
    """The names used within a node; `Dataset.member` is a member, not the whole class."""
    stack = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == cls:
            yield "member", each.attr
        elif isinstance(each, ast.Name):
            yield "name", each.id
        else:
            stack.extend(ast.iter_child_nodes(each))


def _is_mark(decorator: ast.expr) -> bool:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
    return name in _MARKS
