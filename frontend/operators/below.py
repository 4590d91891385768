"""Owns the recording of operators that run below transforms of `torch.func`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx
from torch.utils import _pytree as pytree

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.targets import ConstantTensor
from magweld.frontend.operators.tensors import TensorMap
from magweld.frontend.operators.watch import RanBelow

if TYPE_CHECKING:
    from magweld.frontend.operators.recorder import OperatorRecorder
    from magweld.frontend.session.session import Session

# It takes a tensor that code has made of numbers.
_LITERAL: Final = torch.ops.aten.lift_fresh.default
# In a graph zeros have memory.
_PLAIN: Final = {
    torch.ops.aten._efficientzerotensor.default: torch.ops.aten.zeros.default
}
# Longer ones are data.
_LONGEST: Final = 16


def note_below(
    recorder: OperatorRecorder, session: Session, gradients: bool, ran: RanBelow
) -> None:
    """Record an operator that has run; a fault must not reach the program.

    Args:
        session: The run.
        gradients: Whether gradients are recorded around the transforms.
    """
    if session.stopped is not None:
        return
    try:
        with torch._C.DisableTorchFunction():
            _record(recorder, gradients, ran)
    except StopRecordingError as stop:
        session.stop(stop)
    except Exception as error:
        session.stop(StopRecordingError("monitor-error", repr(error)))


def _record(recorder: OperatorRecorder, gradients: bool, ran: RanBelow) -> None:
    name, traits = str(ran.func), ran.traits
    refuse_gradients(gradients, (ran.args, ran.kwargs))
    if ran.decides:
        raise StopRecordingError("tensor-value", name)
    given = [x for x in pytree.tree_leaves(ran.result) if torch.is_tensor(x)]
    if all(x.is_meta for x in given) and not ran.written:
        return  # it is about forms, which are guarded
    node = _create(recorder, ran)
    node.meta.update(recorder.place(), fallible=traits.fallible)
    recorder.tensors.note_writes(node, ran.written, traits.random)
    if not recorder.tensors.register(node, ran.result):
        raise StopRecordingError("tensor-value", name)


def refuse_gradients(gradients: bool, given: Any) -> None:
    """Refuse what needs gradients that are recorded around a transform.

    Args:
        gradients: Whether they are.
        given: What the transform, or an operator below it, takes.

    Raises:
        StopRecordingError: They are, and a tensor needs some.
    """
    if not gradients:
        return
    tensors = filter(torch.is_tensor, pytree.tree_leaves(given))
    # A subclass that handles functions is not told of the question.
    with torch._C.DisableTorchFunction():
        need = any(x.requires_grad for x in tensors)
    if need:
        detail = "a transform of what needs gradients"
        raise StopRecordingError("autograd-graph", detail)


def _create(recorder: OperatorRecorder, ran: RanBelow) -> fx.Node:
    graph, tensors = recorder.graph, recorder.tensors
    if ran.func is _LITERAL and tensors.find(ran.args[0]) is None:
        return _constant(graph, ran.args[0])
    args = tuple(_converted(tensors, x) for x in ran.args)
    kwargs = {key: _converted(tensors, x) for key, x in ran.kwargs.items()}
    return graph.call_function(_PLAIN.get(ran.func, ran.func), args, kwargs)


def _constant(graph: fx.Graph, tensor: torch.Tensor) -> fx.Node:
    """Return the node of a tensor that follows from nothing but the program."""
    if tensor.numel() > _LONGEST:
        return graph.call_function(ConstantTensor(tensor), ())
    form: dict[str, Any] = {"dtype": tensor.dtype, "device": tensor.device}
    return graph.call_function(torch.tensor, (tensor.tolist(),), form)


def _converted(tensors: TensorMap, value: Any) -> Any:
    """Return an argument as the graph holds it; native code has made the lists."""
    if torch.is_tensor(value):
        return tensors.node(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_converted(tensors, item) for item in value)
    return value
