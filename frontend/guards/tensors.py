"""Owns the guards on the inputs of a graph: their form, and the memory that they share.

Torch's own check of forms ends the process when it meets a tensor without sizes and
strides, so it comes behind a guard that there is none. What native code has compared
needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from magweld.frontend.guards import emit
from magweld.frontend.guards.builder import Builder
from magweld.frontend.guards.checks import OverlapCheck, TensorCheck
from magweld.frontend.guards.guard import Category
from magweld.frontend.guards.listing import Test
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.state.nodes import Node

# Variable that says whether native code has compared all forms.
_FIT = "fit"


def guard_tensors(
    builder: Builder,
    recorder: OperatorRecorder,
    dims: Mapping[Node, frozenset[int]],
) -> None:
    """Guard the inputs of the graph.

    Args:
        recorder: Which tensors take part.
        dims: Lifted dimensions of them.
    """
    inputs = recorder.inputs
    if not inputs:
        return
    nodes = [item.node for item in inputs]
    tensors: list[torch.Tensor] = [node.obj for node in nodes]
    paths = [*map(builder.paths.of, nodes)]
    names = ", ".join(paths[:3])
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    before = [recorder.tensors.replacements.before(tensor) for tensor in tensors]
    lifted = [dims.get(node, frozenset()) for node in nodes]
    check = TensorCheck(before, paths, lifted)
    _FormGuards(builder, nodes, check).add(names + more)
    if recorder.tensors.reads_offsets:
        offsets = [tensor.storage_offset() for tensor in tensors]
        builder.external(
            Category.TENSOR,
            f"storage_offset of {names}{more}",
            "as recorded",
            lambda *now: [tensor.storage_offset() for tensor in now] == offsets,
            nodes,
        )
    if recorder.written:
        builder.external(
            Category.ALIAS,
            "memory of the tensors that are written",
            "shared by the same tensors, which lie in it as they did",
            OverlapCheck(tensors, recorder.written).check,
            nodes,
        )


class _FormGuards:
    """The guards on the form of tensors."""

    def __init__(
        self, builder: Builder, nodes: Sequence[Node], check: TensorCheck
    ) -> None:
        self._builder = builder
        self._nodes = nodes
        self._check = check
        self._setup = self._compared()
        self._begin = f"{_FIT} or " if self._setup else ""

    def add(self, path: str) -> None:
        """Add the guards: none is nested, then their form, which path describes."""
        builder = self._builder
        others = [node for node in self._nodes if not builder.is_stable(node)]
        stable = [node for node in self._nodes if builder.is_stable(node)]
        if others:
            self._guard_nested(others)
        if stable:
            builder.listing.covered.add(len(builder.listing.guards))
            # It is not there in the shortcut, so what others need is not in it.
            setup = self._setup
            self._guard_nested(stable)
            self._setup = setup
        builder.listing.guard(
            Category.TENSOR,
            path,
            "dtype, device, layout, shape, strides, requires_grad; pairwise distinct",
            None,
            *self._setup,
            test=Test(
                f"{self._begin}{self._call(self._check.check, self._nodes)}",
                self._call(self._check.reason, self._nodes),
            ),
        )

    def _guard_nested(self, nodes: Sequence[Node]) -> None:
        test = Test(f"{self._begin}{self._not_nested(nodes)}")
        path = ", ".join(map(self._builder.paths.of, nodes[:3]))
        setup = self._setup
        self._setup = ()
        self._builder.listing.guard(
            Category.TENSOR, path, "not nested", None, *setup, test=test
        )

    def _not_nested(self, nodes: Sequence[Node]) -> str:
        variables = map(self._builder.variable, nodes)
        return f"not ({' or '.join(f'{name}.is_nested' for name in variables)})"

    def _call(self, function: object, nodes: Sequence[Node]) -> str:
        name = self._builder.listing.names.constant(function)
        return emit.call(name, *map(self._builder.variable, nodes))

    def _compared(self) -> tuple[str, ...]:
        """Return what compares forms first, if native code can."""
        quick = self._check.quick
        if quick is None:
            return ()
        asked = [self._nodes[number] for number in quick.asked]
        tests = [self._call(quick.alike, self._nodes)]
        if quick.others:
            tests.append(self._not_nested(asked[: quick.others]))
        tests.append(self._call(quick.check, asked))
        return (f"{_FIT} = {' and '.join(tests)}",)
