"""Owns which gradients of a program are an operator of its graph.

`torch.autograd.grad` runs nodes of the autograd graph. It is an operator like others
where operators of the same run have made all of them: a hit makes them anew.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd.graph import Node

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.edges import end_at, is_plain_leaf, nodes_behind
from magweld.frontend.operators.history import gradient_node
from magweld.frontend.operators.tensors import PLAIN_TENSORS

_ID: Final = "autograd-graph"
_SIGNATURE: Final = inspect.signature(torch.autograd.grad)
# Nodes that torch has made for operators of its own. Custom functions have other names.
_OF_OPERATORS: Final = re.compile(r"\w+Backward\d+")
_OF_MEMORY: Final = frozenset(
    {"torch::autograd::CopySlices", "torch::autograd::CopyBackwards"}
)


def check_gradients(
    args: Sequence[Any], kwargs: dict[str, Any], older: Sequence[Tensor]
) -> None:
    """Make sure that a call of `torch.autograd.grad` is an operator of the run.

    Gradients for tensors from before the run are, if all of these are leaves without
    hooks: none of them follows from another one then. A hit asks for the same.

    Args:
        args: Those of the call.
        kwargs: Likewise.
        older: The tensors from before the run that it has read.

    Raises:
        StopRecordingError: It is none.
    """
    try:
        given = _SIGNATURE.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise StopRecordingError(_ID, str(error)) from error
    if given.get("is_grads_batched", False) is not False:
        raise StopRecordingError(_ID, "gradients of many tangents at once")
    outputs, inputs = (_tensors(given[name]) for name in ("outputs", "inputs"))
    _tensors(given.get("grad_outputs"))
    if not all(tensor.is_cpu for tensor in (*outputs, *inputs)):
        raise StopRecordingError(_ID, "gradients on a GPU")
    given_before = [x for x in older if x.requires_grad]
    if any(one is x for one in inputs for x in given_before):
        if not all(map(is_plain_leaf, given_before)):
            raise StopRecordingError(_ID, "gradients for an argument with a history")
    for node in _between(outputs, inputs):
        if _OF_OPERATORS.fullmatch(node.name()) is None and (
            node.name() not in _OF_MEMORY
        ):
            raise StopRecordingError(_ID, f"gradients by {node.name()}")


def _tensors(given: Any) -> list[Tensor]:
    parts = list(given) if type(given) in (tuple, list) else [given]
    found = [part for part in parts if part is not None]
    if not all(type(part) in PLAIN_TENSORS for part in found):
        raise StopRecordingError(_ID, "gradients of no plain tensors")
    return found


def _between(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> set[Node]:
    """Return the nodes on the ways from outputs to inputs, those of inputs left out.

    Raises:
        StopRecordingError: Torch might make a node only when it is asked for one.
    """
    try:
        for output in outputs:
            gradient_node(output)
        ends = {end_at(x) for x in inputs}
    except RuntimeError as error:
        raise StopRecordingError(_ID, str(error)) from error
    users: dict[Node, list[Node]] = {}
    for node in nodes_behind(outputs, ends):
        for source, _ in node.next_functions:
            if source is not None:
                users.setdefault(source, []).append(node)
    found: set[Node] = set()
    work = [*ends]
    while work:
        new = [node for node in users.get(work.pop(), []) if node not in found]
        found.update(new)
        work += new
    return found
