"""Owns docs/tile_graph.md: the reference of the dialect, with examples."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from magweld.bindings import ext, ir
from magweld.context import make_context
from magweld.dialects import tile_graph
from magweld.dialects.tile_graph.dialect import Attribute, Operation
from magweld.dialects.tile_graph.discardable import DISCARDABLE
from magweld.passes.infrastructure.options import attribute_texts, without_attributes

# A module that the lit suite verifies, with every op and attribute.
EXAMPLES = Path("lit_tests", "dialects", "tile_graph", "ops.mlir")

_INTRODUCTION = """\
What the verifier of each op demands is in the cases of
`lit_tests/dialects/tile_graph/invalid.mlir`; [dialect.md](dialect.md) explains how the
ops work together. The examples below are printed from the verified module
`{examples}`."""

_DISCARDABLE = """\
Passes mark ops of other dialects. `verify-phase`, with which the pipelines of
`magweld-opt --compile-to` begin, checks these attributes; `strip-tile-graph` removes
them."""


def dialect_page(root: Path, notice: str) -> str:
    """Return the page as Markdown.

    Args:
        root: The repository, for the examples.
        notice: What to put below the title.
    """
    with make_context(), ir.Location.unknown():
        module = ir.Module.parseFile(str(root / EXAMPLES))
        module.operation.verify()
        found = dict(_examples(module))
        parts = [
            "# Reference of the `tile_graph` dialect",
            notice,
            _INTRODUCTION.format(examples=EXAMPLES),
            "## Ops",
        ]
        for op in sorted(_classes(Operation), key=lambda op: op.OPERATION_NAME):
            parts += _section(op, op.OPERATION_NAME, found)
        parts.append("## Attributes")
        for attribute in sorted(_classes(Attribute), key=_attribute_name):
            parts += _section(attribute, _attribute_name(attribute), found)
    parts += ["## Attributes of other ops", _DISCARDABLE, _discardable_table()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _discardable_table() -> str:
    lines = ["| attribute | of | value | meaning |", "|---|---|---|---|"]
    for one in DISCARDABLE:
        holders = ", ".join(f"`{name}`" for name in one.holders) or "any"
        kind = one.kind.__name__
        lines.append(f"| `{one.name}` | {holders} | {kind} | {one.meaning} |")
    return "\n".join(lines)


def _classes(base: Any) -> list[Any]:
    exported = [getattr(tile_graph, name) for name in tile_graph.__all__]
    return [c for c in exported if inspect.isclass(c) and issubclass(c, base)]


def _attribute_name(attribute: Any) -> str:
    return f"#tile_graph.{attribute.__name__.removesuffix('Attr').lower()}"


def _section(part: Any, name: str, found: dict[str, str]) -> list[str]:
    table = attribute_texts(part)
    rows = [f"| `{key}` | {text} |" for key, text in table.items()]
    head = ["| attribute | meaning |", "|---|---|"]
    return [
        f"### `{name}`",
        without_attributes(inspect.getdoc(part) or ""),
        _values(part),
        "\n".join([*head, *rows]) if rows else "",
        f"```mlir\n{found[name]}\n```",
    ]


def _values(part: Any) -> str:
    """Return the operands and results of an op as a line of text."""
    texts = []
    kinds = (("Operands", ext.OperandDef), ("Results", ext.ResultDef))
    for title, kind in kinds:
        fields = [f for f in getattr(part, "_fields", ()) if isinstance(f, kind)]
        named = ", ".join(f"`{f.name}` ({f.constraint.__name__})" for f in fields)
        texts += [f"{title}: {named}."] if named else []
    return " ".join(texts)


def _examples(module: ir.Module) -> Iterator[tuple[str, str]]:
    """Yield every op and attribute of the dialect in a module with its text, once."""
    seen = set()
    ops: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        ops.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in ops:
        if op.name.startswith("tile_graph.") and op.name not in seen:
            seen.add(op.name)
            yield op.name, str(op)
        for entry in op.attributes.values():
            for name, text in _attributes_in(entry):
                if name not in seen:
                    seen.add(name)
                    yield name, text


def _attributes_in(attribute: Any) -> Iterator[tuple[str, str]]:
    """Yield the attributes of the dialect in an attribute, the outer one first."""
    parts: Any = ()
    if isinstance(attribute, Attribute):
        yield _attribute_name(type(attribute)), str(attribute)
        parts = attribute.params
    elif isinstance(attribute, ir.ArrayAttr):
        parts = attribute
    for part in parts:
        yield from _attributes_in(part.maybe_downcast())
