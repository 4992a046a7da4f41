"""Syntax trees in a written form that is the same in every version of Python, and what their statements bind.

Written form: `(Type field=value …)`, fields in the grammar's order, lists in brackets, empty fields left out.
Strings, numbers and bytes are written exactly; neighbouring pieces of text in an f-string are one piece. Left out:
comments, formatting, docstrings, type comments and whether a name is read or bound (its place says so).

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNSEEN = {"ctx", "kind", "type_comment", "type_ignores"}
_Scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def written(root: ast.AST, *, signature: bool = True) -> str:
    """The written form of a tree. Without `signature`, the root's name and all annotations of functions are left out.

    Iterative, because a long sum or chain of calls nests deeper than the interpreter's stack.
    """
    out: list[str] = []
    stack: list[object] = [root]
    while stack:
        piece = stack.pop()
        if isinstance(piece, _Text):
            out.append(piece)
        elif isinstance(piece, ast.Constant):
            out.append(f"({_constant(piece.value)})")
        elif isinstance(piece, ast.AST):
            out.append(f"({type(piece).__name__}")
            stack.append(_Text(")"))
            for name, value in reversed(list(_fields(piece, signature=signature, is_root=piece is root))):
                stack += [value, _Text(f" {name}=")]
        elif isinstance(piece, list):
            out.append("[")
            stack += [_Text("]"), *reversed(piece)]
        else:
            out.append(_constant(piece))
    return "".join(out)


def definitions(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Which statements of a module or class bind or change which names.

    A call on its own (`CONFIG.update(…)`) may change whatever it names. `*` is what `from x import *` binds.
    What runs only when the file is run as a program binds nothing.
    """
    found: dict[str, list[ast.stmt]] = {}
    for statement in body:
        for name in dict.fromkeys(_bound(statement)):
            found.setdefault(name, []).append(statement)
    return found


def imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The modules imported anywhere within a node, as (level of a relative import, dotted name)."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from ((0, alias.name) for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            base = each.module or ""
            yield each.level, base
            # What is imported from a package may be one of its modules.
            yield from ((each.level, f"{base}.{alias.name}".lstrip(".")) for alias in each.names if alias.name != "*")


class _Text(str):
    """Text of the written form itself, as opposed to a string of the program."""

    __slots__ = ()


def _fields(node: ast.AST, *, signature: bool, is_root: bool) -> Iterator[tuple[str, object]]:
    for name in node._fields:
        value = getattr(node, name, None)
        if name in _UNSEEN or value is None or value == []:
            continue
        if not signature and (
            (is_root and name == "name") or name == "returns" or (isinstance(node, ast.arg) and name == "annotation")
        ):
            continue
        if name == "body" and isinstance(node, (ast.Module, *_Scopes)):
            value = _without_docstring(node.body)
        elif name == "values" and isinstance(node, ast.JoinedStr):
            value = _joined(node.values)
        if value != []:
            yield name, value


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    is_docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    rest = body[1:] if is_docstring else body
    return [each for each in rest if not _is_main_block(each)]


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """The pieces of an f-string with neighbouring texts joined: versions differ in where they cut."""
    out: list[ast.expr] = []
    for value in values:
        previous = out[-1] if out else None
        if not isinstance(value, ast.Constant):
            out.append(value)
        elif isinstance(previous, ast.Constant):
            out[-1] = ast.Constant(str(previous.value) + str(value.value))
        elif value.value != "":
            out.append(value)
    return out


def _constant(value: object) -> str:
    if isinstance(value, bool) or value is None or value is ...:
        return str(value)
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, float):
        return f"float {value.hex()}"
    if isinstance(value, complex):
        return f"complex {value.real.hex()} {value.imag.hex()}"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    return f"str {value!a}"


def _bound(statement: ast.stmt) -> Iterator[str]:
    if _is_main_block(statement):
        return
    if isinstance(statement, ast.Expr):
        yield from (each.id for each in ast.walk(statement) if isinstance(each, ast.Name))
        return
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, _Scopes):
            yield node.name
            yield from (name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names)
            continue  # what is bound inside is not seen outside
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            yield from (each.id for each in ast.walk(node.value) if isinstance(each, ast.Name))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Expr) and node is not statement:
            yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        stack.extend(ast.iter_child_nodes(node))


def _is_main_block(node: ast.AST) -> bool:
    """Whether it is `if __name__ == "__main__":`, which does not run in an import."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    names = {each.id for each in sides if isinstance(each, ast.Name)}
    values = {each.value for each in sides if isinstance(each, ast.Constant)}
    return names == {"__name__"} and values == {"__main__"} and isinstance(node.test.ops[0], ast.Eq)
