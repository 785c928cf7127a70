"""Changes functions of modules that are already imported, wherever other modules and decorators hold them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType

Functions = Mapping[tuple[str, str, int], list[FunctionType]]


def loaded_functions(root: Path) -> Functions:
    """All functions of the loaded product, by file, qualified name and line."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            code = each.__code__
            if code.co_filename.startswith((str(root), str(root.parent))):
                key = os.path.realpath(code.co_filename), code.co_qualname, code.co_firstlineno
                found.setdefault(key, []).append(each)
    return found


def swap(path: Path, functions: Functions) -> bool:
    """Give the loaded functions of a module the code of its changed file. False where none of them differs."""
    new = dict(_codes(compile(path.read_text(encoding="utf-8"), str(path), "exec")))
    swapped = False
    for (file, name, line), held in functions.items():
        if file != str(path) or (name, line) not in new:
            continue
        code = new[name, line]
        for function in held:
            if len(function.__code__.co_freevars) == len(code.co_freevars):
                swapped = swapped or _essence(function.__code__) != _essence(code)
                function.__code__ = code.replace(co_filename=function.__code__.co_filename)
    return swapped


def _essence(code: CodeType) -> object:
    constants = tuple(_essence(c) if isinstance(c, CodeType) else (type(c), repr(c)) for c in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from _codes(constant)
