"""Owns pipelines as values: straight lists of our passes and upstream ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from magweld.bindings import ir
from magweld.diagnostics import PipelineSyntaxError
from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.options import format_options, parse_options
from magweld.passes.infrastructure.pipeline_text import (
    ROOT,
    Element,
    Nest,
    Node,
    format_node,
    format_pipeline,
    parse_pipeline,
)
from magweld.passes.infrastructure.registry import PASSES, PassRegistry
from magweld.passes.infrastructure.upstream import check_upstream


@dataclass(frozen=True)
class Upstream:
    """Upstream passes, as pipeline text that is handed on unchanged.

    Attributes:
        text: Such as `func.func(cse,canonicalize),symbol-dce`.
    """

    text: str

    def check(self, context: ir.Context) -> None:
        """Make sure that native code will take the text without aborting.

        Raises:
            PipelineSyntaxError: A name, an option or the nesting is wrong.
        """
        for node in parse_pipeline(self.text):
            check_upstream(node, self.text, context)

    def __str__(self) -> str:
        return self.text


Step = Pass | Upstream


@dataclass(frozen=True)
class Pipeline:
    """Passes in the order in which they run on a module; `str()` is its text."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return format_pipeline(
            node for step in self.steps for node in _nodes_of_step(step)
        )

    @classmethod
    def parse(cls, text: str, registry: PassRegistry = PASSES) -> Pipeline:
        """Read pipeline text that mixes upstream passes and those of a registry.

        A pass of ours under `func.func(...)` must be able to run on single functions.
        `builtin.module(...)` around it all may be left out.

        Raises:
            PipelineSyntaxError: With the place of what is wrong.
        """
        reader = _Reader(text, registry, ir.Context())
        return cls(tuple(reader.steps(parse_pipeline(text))))


def _nodes_of_step(step: Step) -> tuple[Node, ...]:
    if isinstance(step, Upstream):
        return parse_pipeline(step.text)
    return (Element(step.name, format_options(step) or None),)


@dataclass(frozen=True)
class _Reader:
    """Turns the nodes of one text into steps."""

    text: str
    registry: PassRegistry
    context: ir.Context

    def steps(self, nodes: Iterable[Node]) -> Iterator[Step]:
        for node in nodes:
            if isinstance(node, Element) and node.name in self.registry:
                yield self._our_pass(node, ROOT)
            elif isinstance(node, Element) and self._names_pipeline(node):
                yield from self._named_pipeline(node)
            elif isinstance(node, Nest) and self._has_ours(node):
                yield from self._mixed_nest(node)
            elif isinstance(node, Element) or node.children:
                yield self._upstream(node, ROOT)

    def _names_pipeline(self, node: Node) -> bool:
        return isinstance(node, Element) and node.name in self.registry.pipeline_names()

    def _named_pipeline(self, element: Element) -> tuple[Step, ...]:
        pipeline_class = self.registry.pipeline(element.name)
        pipeline = parse_options(pipeline_class, self.text, element.options_span)
        return pipeline.steps()

    def _our_pass(self, element: Element, anchor: str) -> Pass:
        pass_class = self.registry.get(element.name)
        if anchor not in pass_class.anchors:
            raise self._nesting_error(element, anchor, pass_class.anchors)
        return parse_options(pass_class, self.text, element.options_span)

    def _mixed_nest(self, nest: Nest) -> Iterator[Step]:
        # Function passes are independent of each other's functions, so running a
        # nest pass by pass over all functions gives what function by function does.
        for child in nest.children:
            if isinstance(child, Element) and child.name in self.registry:
                yield self._our_pass(child, nest.anchor)
            elif isinstance(child, Element) and self._names_pipeline(child):
                raise self._nesting_error(child, nest.anchor, (ROOT,))
            elif isinstance(child, Nest) and self._has_ours(child):
                ours = next(self._ours_in(child))
                raise self._nesting_error(ours, child.anchor, (ROOT,))
            else:
                yield self._upstream(Nest(nest.anchor, (child,)), ROOT)

    def _upstream(self, node: Node, anchor: str) -> Upstream:
        try:
            check_upstream(node, self.text, self.context, anchor)
        except PipelineSyntaxError as error:
            hint = self._hint(self.text[error.span.start : error.span.end])
            if not hint:
                raise
            message = error.message + hint
            raise PipelineSyntaxError(message, self.text, error.span) from error
        return Upstream(format_node(node))

    def _hint(self, name: str) -> str:
        known = (*self.registry.names(), *self.registry.pipeline_names())
        close = difflib.get_close_matches(name, known, n=1)
        return f"; did you mean '{close[0]}'?" if close else ""

    def _has_ours(self, node: Node) -> bool:
        return next(self._ours_in(node), None) is not None

    def _ours_in(self, node: Node) -> Iterator[Element]:
        if isinstance(node, Nest):
            for child in node.children:
                yield from self._ours_in(child)
        elif node.name in self.registry or self._names_pipeline(node):
            yield node

    def _nesting_error(
        self, element: Element, anchor: str, anchors: tuple[str, ...]
    ) -> PipelineSyntaxError:
        message = (
            f"pass '{element.name}' runs on {' or '.join(anchors)} "
            f"and cannot be nested under {anchor}"
        )
        return PipelineSyntaxError(message, self.text, element.span)
