"""Owns the check of upstream pass names before they reach native code.

The native pipeline parser reports a pass under the wrong operation, but a *pipeline*
there aborts the process: its builder adds passes without asking. So every name is
tried alone under its anchor first, and a pipeline pass by pass.
"""

from __future__ import annotations

import re

from magweld.bindings import ir, passmanager
from magweld.diagnostics import PipelineSyntaxError
from magweld.passes.infrastructure.pipeline_text import (
    ROOT,
    Element,
    Nest,
    Node,
    format_node,
    parse_pipeline,
)

# The anchor that accepts every pass, so that a pipeline can be expanded below it.
_ANY = "any"
_PREFIX = re.compile(r"^(MLIR Textual PassPipeline Parser:\d+:\d+: error: |: )")
_FRAME = "failed to add `"


def check_upstream(
    node: Node, text: str, context: ir.Context, anchor: str = ROOT
) -> None:
    """Make sure that a PassManager for `anchor` takes a node of upstream passes.

    Args:
        node: Parsed from `text`.
        text: The whole pipeline text, for the place of errors.
        context: Any context; nothing is added to it.
        anchor: Name of the operation that the node is nested under.

    Raises:
        PipelineSyntaxError: A name is unknown, an option wrong, or a pass cannot run
            under its anchor.
    """
    if isinstance(node, Nest):
        for child in node.children:
            check_upstream(child, text, context, node.anchor)
        return
    try:
        for part in _expand(node, context):
            _add(part, anchor, context)
        _add(format_node(node), anchor, context)
    except ValueError as error:
        raise PipelineSyntaxError(_reason(error), text, node.span) from error


def _add(element: str, anchor: str, context: ir.Context) -> str:
    manager = passmanager.PassManager(anchor, context)
    manager.add(element)
    return str(manager)


def _expand(element: Element, context: ir.Context) -> list[str]:
    """Return the passes that a pipeline stands for, none for a single pass."""
    printed = _add(format_node(element), _ANY, context)
    (expanded,) = parse_pipeline(printed)
    assert isinstance(expanded, Nest), "a PassManager prints its anchor"
    if len(expanded.children) == 1 and _name(expanded.children[0]) == element.name:
        return []
    return [format_node(_without_options(child)) for child in expanded.children]


def _name(node: Node) -> str:
    return node.anchor if isinstance(node, Nest) else node.name


def _without_options(node: Node) -> Node:
    # Printed options do not always parse again, and anchors do not depend on them.
    if isinstance(node, Element):
        return Element(node.name)
    return Nest(node.anchor, tuple(map(_without_options, node.children)))


def _reason(error: ValueError) -> str:
    """Return the line of a native message that says what is wrong."""
    lines = [_PREFIX.sub("", line).strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and not line.startswith(_FRAME)]
    return telling[0] if telling else "not accepted by the pass manager"
