"""Owns whether a graph is one for all sizes: two imports of it are compared.

A graph that is imported for two sets of sizes is the same but for shapes, and each
extent of the one is that of the other with the sizes exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from torch import fx

from magweld.artifact import StandIns
from magweld.diagnostics import UnsupportedError
from magweld.importer.externals import External
from magweld.importer.importer import ImportedGraph
from magweld.importer.inner_extents import SHAPED
from magweld.importer.nodes import tensors_of
from magweld.importer.sized_epilogue import sized_epilogue

_PLACES: Final = (
    "a result is an input, written to one, or lies where no product of sizes says"
)


def one_graph(
    first: ImportedGraph, second: ImportedGraph, stand_ins: StandIns, others: StandIns
) -> tuple[ImportedGraph, frozenset[int]]:
    """Return a graph that is one for all sizes, and its extents that are sizes.

    Its results lie where sizes say. The extents are written with the stand-ins: one of
    a program that is none of them may be a multiple of a stand-in by accident.

    Args:
        first: The graph, imported for the stand-ins.
        second: The same, imported for the others.
        stand_ins: Numbers that stand for the sizes.
        others: Other numbers that do.

    Raises:
        UnsupportedError: `size-dependent`, with what depends on the sizes.
    """
    scale = _Scale(stand_ins, others)
    end = sized_epilogue(first.epilogue, second.epilogue, scale.fits)
    if end is None:
        raise _refusal(_PLACES)
    for fault in _faults(first, second, scale):
        raise _refusal(fault)
    shapes = [one.shape for node in first.aten.graph.nodes for one in tensors_of(node)]
    extents = {n for shape in shapes for n in shape if stand_ins.is_runtime(n)}
    return replace(first, epilogue=end), frozenset(extents)


def _refusal(fault: str) -> UnsupportedError:
    return UnsupportedError(
        "size-dependent",
        fault,
        hint="a program is compiled for each size that comes back",
    )


def _faults(
    first: ImportedGraph, second: ImportedGraph, scale: _Scale
) -> Iterator[str]:
    yield from _call_faults(first, second)
    nodes, twins = list(first.aten.graph.nodes), list(second.aten.graph.nodes)
    if [_kind(node) for node in nodes] != [_kind(node) for node in twins]:
        yield "the operators depend on sizes"
        return
    beside = {node for one in first.externals.values() for node in one.beside}
    seen = {node for one in first.externals.values() for node in one.shown}
    for node, twin in zip(nodes, twins, strict=True):
        external = first.externals.get(node.name)
        # What torch runs gets the sizes of a call for numbers that stand for them.
        shaped = node.target in SHAPED or external is not None or node in beside
        # Nothing else sees what lies inside.
        inside = node in beside and node not in seen
        how = {"shaped": shaped, "inside": inside}
        for fault in _node_faults(node, twin, external, scale, **how):
            yield f"{first.where(node.name)}: {fault}"


def _call_faults(first: ImportedGraph, second: ImportedGraph) -> Iterator[str]:
    """Yield what around the compiled function depends on sizes, or may."""
    if first.arguments != second.arguments or first.converted != second.converted:
        yield "which inputs are read depends on sizes"
    if first.constants or second.constants:
        yield "the graph holds tensors of its own"
    ours, theirs = (
        [(name, [node.name for node in external.beside]) for name, external in found]
        for found in (first.externals.items(), second.externals.items())
    )
    if ours != theirs:
        yield "what torch runs depends on sizes"


def _node_faults(
    node: fx.Node,
    twin: fx.Node,
    external: External | None,
    scale: _Scale,
    *,
    shaped: bool,
    inside: bool,
) -> Iterator[str]:
    """Yield why a node is not the same for other sizes.

    Args:
        node: The node.
        twin: The same node of the graph for the others.
        external: What runs it through torch, if torch does.
        scale: Compares numbers.
        shaped: Whether numbers among its arguments may be sizes.
        inside: Whether torch alone reads what it makes, where it is made.
    """
    pairs = zip((node.args, node.kwargs), (twin.args, twin.kwargs), strict=True)
    for ours, theirs in pairs:
        yield from scale.argument_faults(ours, theirs, shaped=shaped)
    for one, other in zip(tensors_of(node), tensors_of(twin), strict=True):
        yield from scale.shape_faults(one.shape, other.shape, inside=inside)
    if external is not None and external.strides is not None:
        yield "it depends on strides"


def _kind(node: fx.Node) -> tuple[str, str, object]:
    return node.op, node.name, node.target


class _Scale:
    """Compares what was made for some sizes with what was made for others."""

    def __init__(self, stand_ins: StandIns, others: StandIns) -> None:
        self._stand_ins = stand_ins
        self._others = others
        self._inner = {*zip(stand_ins.inner, others.inner, strict=True)}

    def shape_faults(
        self, ours: Sequence[int], theirs: Sequence[int], *, inside: bool
    ) -> Iterator[str]:
        """Yield why two shapes are not one shape with other sizes.

        Args:
            ours: One shape.
            theirs: The other one.
            inside: Whether extents may be no products of sizes.
        """
        if len(ours) != len(theirs):
            yield "the number of dimensions depends on sizes"
            return
        for extent, other in zip(ours, theirs, strict=True):
            is_inner = inside and (extent, other) in self._inner
            if not is_inner and not self.fits(extent, other):
                yield f"an extent is {extent} for sizes {self._sizes()}"

    def argument_faults(self, ours: Any, theirs: Any, *, shaped: bool) -> Iterator[str]:
        """Yield why the arguments of two nodes differ by more than shapes.

        Args:
            ours: Arguments of one node.
            theirs: Of the other.
            shaped: Whether numbers are extents.
        """
        if isinstance(ours, fx.Node) and isinstance(theirs, fx.Node):
            if ours.name != theirs.name:
                yield "its operands depend on sizes"
        elif type(ours) is not type(theirs):
            yield "the kind of an argument depends on sizes"
        elif isinstance(ours, (list, tuple)):
            yield from self._list_faults(ours, theirs, shaped=shaped)
        elif isinstance(ours, dict):
            yield from self._list_faults(list(ours), list(theirs), shaped=False)
            values = list(ours.values()), list(theirs.values())
            yield from self._list_faults(*values, shaped=shaped)
        elif shaped and type(ours) is int and self.fits(ours, theirs):
            return
        elif repr(ours) != repr(theirs):  # not a number is like itself here
            yield f"argument {ours!r} depends on sizes"

    def _list_faults(
        self, ours: Sequence[Any], theirs: Sequence[Any], *, shaped: bool
    ) -> Iterator[str]:
        if len(ours) != len(theirs):
            yield "the number of its arguments depends on sizes"
            return
        for one, other in zip(ours, theirs, strict=True):
            yield from self.argument_faults(one, other, shaped=shaped)

    def fits(self, ours: int, theirs: int) -> bool:
        """Return whether a number is the other one with the sizes exchanged."""
        if self._stand_ins.is_runtime(ours):
            return self._stand_ins.at(ours, self._others.numbers) == theirs
        return ours == theirs

    def _sizes(self) -> str:
        return ", ".join(map(str, self._stand_ins.numbers))
