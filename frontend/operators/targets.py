"""Owns how a torch call is written as a node of a graph: kind and target."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import fx
from torch.fx.node import _get_qualified_name

from magweld.frontend.operators.warned import Place

_OPERATORS: Final = {
    "__setitem__": operator.setitem,
    "__getitem__": operator.getitem,
}


class Opaque:
    """A callable that has no name under which generated code would find it."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


class CustomFunction(Opaque):
    """The call of a custom autograd function; runs the user's code on every hit."""

    def __init__(self, cls: Any) -> None:
        super().__init__(cls.apply, f"{cls.__qualname__}.apply")


class ArrayFunction(Opaque):
    """A function of arrays as one of the tensors that these show.

    Args:
        args: Its arguments, None for each tensor.
    """

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        super().__init__(function, f"numpy_{function.__name__}")
        self._args, self._kwargs = args, kwargs

    def __call__(self, *tensors: torch.Tensor) -> torch.Tensor:
        """Return the tensor that shares the memory of the result.

        Raises:
            RuntimeError: It is being traced: nothing would be seen of what it does.
        """
        if torch._C._len_torch_dispatch_stack():
            raise RuntimeError(f"{self.__name__} runs through torch only")
        shown = (tensor.numpy() for tensor in tensors)
        args = (next(shown) if arg is None else arg for arg in self._args)
        return torch.from_numpy(self._function(*args, **self._kwargs))


class ConstantTensor(Opaque):
    """Gives a new tensor with the elements of one of the recorded run."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.clone().clone, "constant")


class WarningCall(Opaque):
    """An operator that warns as of the line of the program that calls it."""

    def __init__(self, node: fx.Node, place: Place) -> None:
        target, name = node.target, node.target
        if isinstance(target, str):
            target = operator.attrgetter(target)
        else:
            name = target.__name__
        super().__init__(target, str(name))
        self._is_method = node.op == "call_method"
        self._call = place.caller(place.namespace)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._function
        if self._is_method:
            function, args = function(args[0]), args[1:]
        return self._call(function, args, kwargs)


def warn_in_place(node: fx.Node) -> None:
    """Have an operator that has warned in the run warn at the same line in hits.

    Elsewhere it would do so at a line of generated code.
    """
    place = node.meta.get("warns")
    if isinstance(place, Place):
        node.target = WarningCall(node, place)
        node.op = "call_function"
        del node.meta["warns"]


def create_node(
    graph: fx.Graph, func: Any, name: str, args: tuple[Any, ...], kwargs: Any
) -> fx.Node:
    """Append the node of one torch call.

    Args:
        name: As `name_of` tells it.
        args: Its arguments, tensors replaced by nodes.
        kwargs: Its keyword arguments, likewise.
    """
    if name.startswith("get "):
        args = (*args[:1], name[4:])
        return graph.create_node("call_function", getattr, args, kwargs)
    if name.startswith("set "):
        args = (args[0], name[4:], args[1])
        return graph.create_node("call_function", setattr, args, kwargs)
    target: Any = _OPERATORS.get(name)
    if target is not None:
        return graph.create_node("call_function", target, args, kwargs)
    method = _method_name(func, name)
    if method is not None:
        return graph.create_node("call_method", method, args, kwargs)
    if not _is_found_by_name(func):
        func = Opaque(func, name)
    return graph.create_node("call_function", func, args, kwargs)


def _method_name(func: Any, name: str) -> str | None:
    if getattr(torch.Tensor, name, None) is func:
        return name
    found = _methods().get(id(func))
    return found if found and getattr(torch.Tensor, found, None) is func else None


@functools.cache
def _methods() -> dict[int, str]:
    # `Tensor.__pow__` calls itself `pow`, which is another method.
    return {id(value): name for name, value in vars(torch.Tensor).items()}


def _is_found_by_name(func: Any) -> bool:
    """Return whether generated code that names a function of torch means this one."""
    if not hasattr(func, "__name__"):
        return False  # one that `torch.jit.trace` has made
    module = getattr(func, "__module__", None)
    if type(module) is str and module.partition(".")[0] != "torch":
        return True  # held by the graph as an object
    path = _get_qualified_name(func)
    found: Any = sys.modules["torch"]
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found is func
