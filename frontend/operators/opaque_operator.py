"""Owns torch calls inside of an operator that is repeated as a whole on a hit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.utils import _pytree as pytree

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.kinds import CallKind, kind_of
from magweld.frontend.operators.tensors import TensorMap

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

# What such code may do with tensors.
_REPEATABLE: Final = frozenset({CallKind.OPERATOR, CallKind.METADATA, CallKind.STATE})


def run_opaque(
    session: Session,
    tensors: TensorMap,
    call: Callable[[], Any],
    name: str,
    args: Any,
    transformed: bool,
) -> Any:
    """Run a torch call; tensors from before the run that it takes become guarded.

    Args:
        session: The run; it ends when the call is more than a computation.
        name: As `name_of` tells it.
        transformed: Whether that is within a transform of `torch.func`.
    """
    try:
        if kind_of(name, args[0]) not in _REPEATABLE:
            if transformed:
                raise StopRecordingError("native-call", f"{name} in a transform")
            raise StopRecordingError("custom-function", f"forward: {name}")
        for value in pytree.tree_leaves(args):
            known = session.graph.find(value)
            if isinstance(value, torch.Tensor) and known and known.external:
                tensors.node(value)
    except StopRecordingError as stop:
        session.stop(stop)
    result = call()
    adopt_deep(session, result)
    return result


def adopt_deep(session: Session, value: Any) -> None:
    """Register a value and all in it as made by the run."""
    session.graph.adopt(value)
    if isinstance(value, (tuple, list)):
        for item in value:
            adopt_deep(session, item)


def holds_tensor(value: Any) -> bool:
    """Return whether a value is a tensor, or a tuple or list with one in it."""
    if isinstance(value, (tuple, list)):
        return any(map(holds_tensor, value))
    return isinstance(value, torch.Tensor)
