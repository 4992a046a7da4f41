"""Reading the declaration off a dataset's class, and refusing what cannot be meant.

Standard library only: it runs in the user's interpreter, on their class.
"""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import re
import types
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

from gds_lfs.dataset.declaration import Declaration, DeclarationError, Field, Ingest, ordered
from gds_lfs.dataset.fieldtype import FieldType, from_annotation
from gds_lfs.dataset.handlers import is_handler, read_handlers
from gds_lfs.dataset.kinds import Kind, KindSet
from gds_lfs.dataset.schema import DATASET_MARK, INGEST_MARK, File

if TYPE_CHECKING:
    from collections.abc import Callable

_WINDOWS_NAMES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def find_dataset(namespace: dict[str, Any], module: str) -> type:
    """The one @dataset class that the module defines; raises DeclarationError when there is none, or two."""
    found = {
        id(value): value
        for value in namespace.values()
        if isinstance(value, type) and DATASET_MARK in vars(value) and value.__module__ == module
    }
    if not found:
        raise DeclarationError("no dataset is here: put @dataset above its class")
    if len(found) > 1:
        names = " and ".join(cls.__name__ for cls in found.values())
        raise DeclarationError(f"more than one dataset ({names}); give each its own folder and index.py")
    return next(iter(found.values()))


def read_class(cls: type, namespace: dict[str, Any]) -> Declaration:
    """The declaration of a @dataset class whose module has this namespace; raises DeclarationError.

    Fingerprints are left empty: they come from the source, see `fingerprint`.
    """
    if cls.__bases__ != (object,):
        base = cls.__bases__[0].__name__
        raise DeclarationError(f"{cls.__name__} inherits from {base}; a dataset inherits from nothing")
    options = vars(cls)[DATASET_MARK]
    handlers = {name for name, value in vars(cls).items() if is_handler(value)}
    read_handlers(cls, inspect.get_annotations(cls))
    members = {
        name: _unwrapped(value) for name, value in vars(cls).items() if not _is_private(name) and name not in handlers
    }
    ingests = [name for name, value in vars(cls).items() if _is_ingest(value)]
    fields = _stored_fields(cls, members, namespace)
    names = {field.name for field in fields}
    functions = {
        name: value
        for name, value in members.items()
        if name not in names and name not in ingests and _is_function(value)
    }
    _refuse_forgotten_colons(members, names, functions)
    known = names | functions.keys()
    fields += [_derived_field(name, function, known, namespace, cls) for name, function in functions.items()]
    for name in ingests:
        _check_ingest(name, _unwrapped(vars(cls)[name]))
    for field in fields:
        _check_parameters(field, functions.get(field.name), fields, namespace, cls)
    _check_names(cls.__name__, fields, options["sql_file"])
    ordered(tuple(field for field in fields if field.derived))
    return Declaration(
        cls.__name__,
        _checked_sql_file(options["sql_file"]),
        _checked_remote(options["remote"]),
        tuple(fields),
        tuple(Ingest(name) for name in ingests),
    )


def with_code(declaration: Declaration, fingerprint: Callable[[str, str], str]) -> Declaration:
    """The declaration with the fingerprints that `fingerprint(class, function)` gives."""

    def code(name: str) -> str:
        try:
            return fingerprint(declaration.name, name)
        except KeyError:
            raise DeclarationError(f"{name}: write it with `def` in the class {declaration.name}") from None

    return dataclasses.replace(
        declaration,
        fields=tuple(
            dataclasses.replace(field, code=code(field.name)) if field.derived else field
            for field in declaration.fields
        ),
        ingests=tuple(Ingest(ingest.name, code(ingest.name)) for ingest in declaration.ingests),
    )


def _stored_fields(cls: type, members: dict[str, Any], namespace: dict[str, Any]) -> list[Field]:
    try:
        annotations = inspect.get_annotations(cls)
    except Exception as error:
        raise DeclarationError(f"the annotations of {cls.__name__}: {error}") from None
    fields = []
    for name, annotation in annotations.items():
        resolved = annotation if _is_private(name) else _evaluated(annotation, name, namespace, cls)
        if _is_private(name) or resolved is ClassVar or get_origin(resolved) is ClassVar:
            continue
        kind = _field_type(resolved, name)
        fields.append(_with_default(name, kind, members[name]) if name in members else Field(name, kind))
    if not fields:
        raise DeclarationError(f"{cls.__name__} has no fields: write at least one, such as `image: File[png]`")
    return fields


def _with_default(name: str, kind: FieldType, default: Any) -> Field:
    if kind.is_file and default is not None:
        raise DeclarationError(f"{name}: a file's field has no default but None")
    try:
        return Field(name, kind, required=False, default=kind.check(default))
    except ValueError as error:
        raise DeclarationError(f"{name}: its default: {error}") from None


def _derived_field(name: str, function: Any, known: set[str], namespace: dict[str, Any], cls: type) -> Field:
    _refuse_odd_functions(name, function)
    annotation = inspect.unwrap(function).__annotations__.get("return", inspect.Signature.empty)
    parameters = list(inspect.signature(function).parameters.values())
    if annotation is inspect.Signature.empty:
        raise DeclarationError(
            f"{name}: a function of a dataset is an ingest (put @ingest above it), prepares rows for training "
            f"(@preprocess, @input, @ground_truth, @metadata) or computes a field: then it says its type "
            f"(`-> File[png]`). Start the name of a helper with an underscore"
        )
    if not parameters:
        raise DeclarationError(f"{name} takes no field: put @ingest above it if it brings rows")
    for parameter in parameters:
        if parameter.name in ("self", "cls"):
            raise DeclarationError(f"{name}: drop `{parameter.name}`; its parameters name the fields it is made from")
        if parameter.name not in known or parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            raise DeclarationError(
                f"{name}: its parameter `{parameter}` is no field of the dataset; constants belong beside the class"
            )
    kind = _field_type(_evaluated(annotation, name, namespace, cls), name)
    return Field(name, kind, required=False, derived=True, inputs=tuple(each.name for each in parameters))


def _check_parameters(field: Field, function: Any, fields: list[Field], namespace: dict[str, Any], cls: type) -> None:
    """Refuse a parameter whose annotation contradicts the field it names."""
    annotations = inspect.unwrap(function).__annotations__ if function is not None else {}
    for name in field.inputs:
        actual = next(other.type for other in fields if other.name == name)
        try:
            wanted = from_annotation(_evaluated(annotations[name], name, namespace, cls))
        except (KeyError, TypeError, ValueError, DeclarationError):
            continue  # an annotation that is not one of ours says nothing that could be wrong
        if not actual.widens_to(wanted):
            raise DeclarationError(f"{field.name}: its parameter {name} is declared {wanted}, the field is {actual}")


def _check_ingest(name: str, function: Any) -> None:
    if not _is_function(function):
        raise DeclarationError(f"{name}: @ingest decorates a function")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"{name}: an ingest is a plain function, not an async one")
    required = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if required:
        raise DeclarationError(f"{name}: an ingest takes no parameters; drop `{', '.join(required)}`")


def _refuse_odd_functions(name: str, function: Any) -> None:
    if isinstance(function, property):
        raise DeclarationError(f"{name}: a field is computed by a plain function; drop @property")
    if inspect.isgeneratorfunction(function):
        raise DeclarationError(f"{name} yields: it computes one value of one row, so `return` it")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"{name}: a field is computed by a plain function, not an async one")


def _refuse_forgotten_colons(members: dict[str, Any], names: set[str], functions: dict[str, Any]) -> None:
    for name, value in members.items():
        if name in names or name in functions or _is_ingest(value):
            continue
        is_type = any(value is each for each in (str, int, float, bool, bytes, File))
        if is_type or isinstance(value, (FieldType, Kind, KindSet)):
            raise DeclarationError(f"{name} = … declares nothing: write `{name}: …`, with a colon")


def _check_names(dataset: str, fields: list[Field], sql_file: object) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        other = seen.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            raise DeclarationError(
                f"{dataset}: {other} and {field.name} differ in case only; SQL and many disks take them for one"
            )
        if field.type.is_file and _WINDOWS_NAMES.fullmatch(field.name):
            raise DeclarationError(f"{field.name}: Windows has no folder of this name; call the field otherwise")
        if field.type.is_file and field.name == sql_file:
            raise DeclarationError(f"{field.name}: sql_file has the name of this field's folder")


def _checked_sql_file(name: object) -> str:
    wrong = (
        not isinstance(name, str)
        or not name
        or name in (".", "..", "index.py")
        or any(character in name for character in '/\\:*?"<>|')
        or name.startswith((".git", "-"))
        or _CONTROL.search(name)
    )
    if wrong:
        raise DeclarationError(f"sql_file={name!r}: give the name of a file beside index.py, such as dataset.sqlite")
    return str(name)


def _checked_remote(remote: object) -> str | None:
    if remote is None or (isinstance(remote, str) and remote and not _CONTROL.search(remote)):
        return remote
    raise DeclarationError(f"remote={remote!r}: give a folder or an s3:// URL")


def _field_type(annotation: object, name: str) -> FieldType:
    if annotation is File:
        raise DeclarationError(f"{name}: say which kinds of file, such as File[png | jpg] or File[any_file]")
    try:
        return from_annotation(annotation)
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"{name}: {error}") from None


def _evaluated(annotation: object, name: str, namespace: dict[str, Any], cls: type) -> object:
    """The annotation itself where it came as text (`from __future__ import annotations`, or quotes)."""
    while isinstance(annotation, str):
        try:
            # The class comes last: a field called `json` must not hide the kind.
            annotation = eval(annotation, {**vars(cls), **vars(builtins), **namespace})
        except Exception as error:
            raise DeclarationError(f"{name}: its type `{annotation}`: {error}") from None
    return annotation


def _unwrapped(value: Any) -> Any:
    return value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


def _is_ingest(value: Any) -> bool:
    # The mark is on the function, or on the staticmethod around it.
    return any(getattr(each, "__dict__", {}).get(INGEST_MARK) is True for each in (value, _unwrapped(value)))


def _is_function(value: Any) -> bool:
    if isinstance(value, (type, Kind, KindSet, FieldType)):
        return False
    return isinstance(value, (types.FunctionType, property)) or callable(value)


def _is_private(name: str) -> bool:
    return name.startswith("_")
