"""Owns the time of the backward pass that begins at a result."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Variable
from torch.utils import _pytree as pytree

from magweld.frontend.operators.history import gradient_node
from magweld.frontend.state.mro import class_dict

_SEQUENCES: Final = frozenset({list, tuple, deque})
_DICTS: Final = frozenset({dict, OrderedDict, defaultdict})
# What holds no tensor.
_PLAIN: Final = frozenset(
    {bool, int, float, complex, str, bytes, type(None), range}
    | {torch.Size, torch.dtype, torch.device, np.bool_}
    | {kind for kind in np.sctypeDict.values() if issubclass(kind, np.number)}
)


def differentiable(result: Any) -> list[Tensor] | None:
    """Return the tensors of a result that backward can begin at.

    None for a result with parts of other classes, which may hold further ones, and with
    views that autograd tells nothing of. No code of the program runs.
    """
    found: list[Tensor] = []
    waiting, seen = [result], set()
    while waiting:
        part = waiting.pop()
        cls = type(part)
        if issubclass(cls, Tensor):
            found.append(part)
        elif cls not in _PLAIN and id(part) not in seen:
            seen.add(id(part))  # a result may hold itself
            parts = _parts(cls, part)
            if parts is None:
                return None
            waiting += parts
    try:
        return [tensor for tensor in reversed(found) if gradient_node(tensor)]
    except RuntimeError:
        return None


def _parts(cls: type, obj: Any) -> Iterable[Any] | None:
    """Return what is in a container, None for objects of other classes."""
    if cls is np.ndarray:
        return None if obj.dtype.hasobject else ()
    if cls in _SEQUENCES:
        parts: Iterable[Any] = obj
        return parts
    if cls in _DICTS:
        return dict.values(obj)
    # Those that have more than they hold are not known there.
    is_known = cls in pytree.SUPPORTED_NODES
    if issubclass(cls, dict):
        return dict.values(obj) if is_known else None
    if issubclass(cls, tuple) and (is_known or "_fields" in class_dict(cls)):
        return tuple.__iter__(obj)
    return None


def time_backward(
    results: Sequence[Tensor], clock: Callable[[], float], tell: Callable[[float], None]
) -> None:
    """Have the first backward through some tensors timed, from them to its end."""
    begun = False

    def begin(gradients: Any) -> None:
        nonlocal begun
        if begun:
            return
        begun = True
        start = clock()
        Variable._execution_engine.queue_callback(lambda: tell(clock() - start))

    for node in {result.grad_fn for result in results}:
        assert node is not None, "they have gradients"
        node.register_prehook(begin)
