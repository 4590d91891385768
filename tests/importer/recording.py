"""Records the torch functions that a program calls, and the operators that run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Recorder(TorchFunctionMode):
    """Records calls of torch functions as a graph, as the monitor does for tensors."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.graph = torch.fx.Graph()
        self.root = torch.nn.Module()
        self.kept: list[Any] = list(inputs)
        self.nodes = {
            id(x): self.graph.placeholder(f"input_{number}")
            for number, x in enumerate(inputs)
        }

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        leaves = torch.utils._pytree.tree_leaves(result)
        if func is not torch.Tensor.__setitem__ and not any(map(is_tensor, leaves)):
            return result
        arguments = torch.utils._pytree.tree_map(self._argument, (args, kwargs))
        if getattr(func, "__name__", "") == "__get__":
            called = (getattr, (arguments[0][0], func.__self__.__name__), {})
        else:
            called = (func, *arguments)
        node = self.graph.call_function(*called)
        if is_tensor(result):
            self._bind(result, node)
        elif not isinstance(result, type(None)):
            for index, leaf in enumerate(leaves):
                if is_tensor(leaf):
                    part = self.graph.call_function(operator.getitem, (node, index))
                    self._bind(leaf, part)
        return result

    def _bind(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        self.kept.append(tensor)
        self.nodes[id(tensor)] = node

    def _argument(self, value: Any) -> Any:
        if not is_tensor(value):
            return value
        if id(value) not in self.nodes:
            name = f"held_{len(self.nodes)}"
            self.root.register_buffer(name, value.detach())
            self._bind(value, self.graph.get_attr(name))
        return self.nodes[id(value)]


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def record(function: Callable[..., Any], *inputs: torch.Tensor) -> torch.fx.GraphModule:
    """Run a function and return the graph of the torch functions it called."""
    recorder = Recorder(inputs)
    with torch.no_grad(), recorder:
        result = function(*inputs)
    leaves, structure = torch.utils._pytree.tree_flatten(result)
    made = [recorder.nodes[id(x)] if is_tensor(x) else x for x in leaves]
    recorder.graph.output(torch.utils._pytree.tree_unflatten(made, structure))
    return torch.fx.GraphModule(recorder.root, recorder.graph)


class Operators(TorchDispatchMode):
    """Keeps the names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
