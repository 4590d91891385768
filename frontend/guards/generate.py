"""Owns turning the statements of guards into a function, and tests of whole values."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.guards import emit
from magweld.frontend.guards.emit import Names
from magweld.frontend.guards.guard import FILENAME
from magweld.frontend.guards.sameness import same_names, same_objects
from magweld.frontend.state.nodes import Kind


def compile_guards(
    body: list[ast.stmt], namespace: dict[str, Any]
) -> Callable[..., Any]:
    """Return the function `(args, kwargs)` that consists of located statements.

    Args:
        body: Its statements, the line number of each being that of its guard.
        namespace: Its global variables.
    """
    arguments = ast.arguments(
        [], [ast.arg("args"), ast.arg("kwargs")], None, [], [], None, []
    )
    function = ast.FunctionDef("guards", arguments, body, [], None, None)
    locate(arguments.args[0], 1)
    locate(arguments.args[1], 1)
    function.lineno = function.end_lineno = 1
    function.col_offset = function.end_col_offset = 0
    code = compile(ast.Module([function], []), FILENAME, "exec")
    exec(code, namespace)
    run = namespace.pop("guards")
    assert isinstance(run, types.FunctionType), "the module defines one function"
    return run


def locate(node: ast.AST, line: int) -> None:
    """Give a tree the line number of its guard; `ast.walk` takes thrice as long."""
    if isinstance(node, ast.expr_context):
        return
    node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
    node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    for child in list(vars(node).values()):
        if isinstance(child, ast.AST):
            locate(child, line)
        elif type(child) is list:
            for item in child:
                locate(item, line)


def _differs(names: Names, value: ast.expr, expected: Any) -> ast.expr:
    return emit.compare(value, ast.NotEq(), names.literal(expected))


def _keys_differ(names: Names, value: ast.expr, expected: Any) -> ast.expr:
    texts = all(type(key) is str for key in expected)
    same = names.constant(same_names if texts else same_objects)
    return ast.UnaryOp(ast.Not(), emit.call(same, value, names.constant(expected)))


# Tests of reads whose result is compared as a whole.
COMPARED: Final = {
    Kind.LENGTH: _differs,
    Kind.KEYS: _keys_differ,
    Kind.MEMBERS: _keys_differ,
    Kind.CONTENT: _keys_differ,
}
