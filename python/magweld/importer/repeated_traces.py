"""Owns the tracing of calls that are like calls before.

A cell of a recurrent layer is twenty operators, each of which passes all of torch's
dispatcher. Those of the next cell are the same: they are recorded without being run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import fx
from torch.utils import _pytree as pytree

from magweld.importer.repeated_calls import Call, Form, are_new, call_of, form_of
from magweld.importer.tracer import Recorded, Recorder

# A call of fewer operators is traced as fast as it is repeated.
_LEAST_OPERATORS: Final = 3


class RepeatedTraces:
    """Remembers what calls of torch's own functions have recorded.

    A call is like another one if its tensors have the same forms and if the same of
    them are one tensor. Calls are not kept that write to a tensor, read one whose
    values are known or that is no operand, or result in anything but tensors of their
    own. A node without tensors, such as one that switches a mode of torch, lets all be
    forgotten.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[
            tuple[Call, tuple[int, ...]],
            tuple[Recorded, tuple[Form, ...], pytree.TreeSpec],
        ] = {}

    def run(self, node: fx.Node, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:
        """Record the call of a node and return its result.

        Args:
            node: The node.
            args: The arguments that it is called with.
            kwargs: Those with names.
            run: Runs the node.
        """
        call = call_of(node, args, kwargs)
        tensors = _tensors((args, kwargs))
        operands = self._nodes_of(tensors) if call is not None else None
        if call is None or not operands:
            return self._run(run)
        key = call, tuple(map(operands.index, operands))
        known = self._known.get(key)
        if known is not None:
            recorded, forms, structure = known
            makers = [form.make for form in forms]
            made = self._recorder.repeat(recorded, operands, makers)
            return pytree.tree_unflatten(made, structure)
        begin = len(self._recorder.nodes)
        result = self._run(run)
        self._keep(key, tensors, operands, begin, result)
        return result

    def _run(self, run: Callable[[], Any]) -> Any:
        result = run()
        if not _tensors(result):
            self._known.clear()
        return result

    def _keep(
        self,
        key: tuple[Call, tuple[int, ...]],
        tensors: list[torch.Tensor],
        operands: tuple[fx.Node, ...],
        begin: int,
        result: Any,
    ) -> None:
        made = tuple(self._recorder.nodes[begin:])
        leaves, structure = pytree.tree_flatten(result)
        if len(made) < _LEAST_OPERATORS or not are_new(leaves, tensors):
            return
        if self._nodes_of(tensors) != operands:
            return  # one was written to
        results = self._nodes_of(leaves)
        forms = tuple(form for form in map(form_of, leaves) if form is not None)
        if results is None or not {*results} <= {*made} or len(forms) < len(leaves):
            return
        if len({*results}) < len(results):
            return
        read = {one for node in made for one in node.all_input_nodes}
        if read <= {*made, *operands}:
            self._known[key] = Recorded(made, operands, results), forms, structure

    def _nodes_of(self, tensors: list[torch.Tensor]) -> tuple[fx.Node, ...] | None:
        """Return the nodes of tensors, None if one has none."""
        found = [self._recorder.node_of(tensor) for tensor in tensors]
        nodes = tuple(node for node in found if node is not None)
        return nodes if len(nodes) == len(found) else None


def _tensors(tree: Any) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
