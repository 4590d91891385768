"""Owns which tensor of a run is which node of the operator graph."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.arguments import (
    FORMS,
    Arrays,
    convert_sequence,
    of_asarray,
    python_number,
)
from magweld.frontend.operators.data_inputs import Call, DataInputs
from magweld.frontend.operators.forms import Replacements, Shapes
from magweld.frontend.operators.history import is_leaf_with_gradient
from magweld.frontend.operators.kinds import RESIZES
from magweld.frontend.rules.protocols import read_base
from magweld.frontend.state.natives import base_value, is_array, scalar_base
from magweld.frontend.state.nodes import Node
from magweld.frontend.state.paths import identifier_of
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_identity, is_numpy_scalar, is_scalar
from magweld.layouts import note_layout
from magweld.storages import storage_of

if TYPE_CHECKING:
    from magweld.frontend.lifting.scalars import Scalars
    from magweld.frontend.session.session import Session

PLAIN_TENSORS: Final = (torch.Tensor, torch.nn.Parameter)
_TENSOR_KIND: Final = type(torch.FloatTensor)


@dataclass(frozen=True)
class GraphInput:
    """A tensor that the graph reads and that existed before the run.

    Attributes:
        node: Its node in the RefGraph, which knows the path.
        placeholder: Its placeholder.
    """

    node: Node
    placeholder: fx.Node


class TensorMap:
    """Tensors of a run and the nodes that stand for them.

    Attributes:
        graph: The operator graph.
        shapes: Which shapes follow from values.
        written: Storages that were there before the run and were written.
        touched: All storages that were written, of tensors of the run as well.
        inputs: Tensors from before the run, by id, in order of first use.
        reads_offsets: Whether the place of a tensor in its storage was read.
        draws: Whether random numbers were drawn.
        arrays: The arrays that torch calls have taken.
        data: Makes data that keeps changing inputs.
        replacements: What became of form and memory of the inputs.
        scalars: Lifted numbers that operators take, None if there are none.
        taker: Name of the operator whose arguments are being written.
        session: Knows where objects come from.
    """

    def __init__(self, graph: fx.Graph, session: Session) -> None:
        self.graph = graph
        self.session = session
        self.shapes = Shapes()
        self.written: set[int] = set()
        self.touched: set[int] = set()
        self.inputs: dict[int, GraphInput] = {}
        self.reads_offsets = False
        self.draws = False
        self.arrays = Arrays(session.graph)
        self.data = DataInputs(session.graph)
        self.replacements = Replacements()
        self.scalars: Scalars | None = None
        self.taker = ""
        self._nodes: dict[int, fx.Node] = {}
        self._tensors: dict[fx.Node, torch.Tensor] = {}
        self._storages: dict[int, bool] = {}
        self._shared: dict[int, set[int]] = {}

    def release(self) -> None:
        """Forget the tensors, which end when the program lets go of them."""
        self._nodes.clear()
        self._tensors.clear()
        self.inputs.clear()
        self.arrays = Arrays(RefGraph())
        self.replacements = Replacements()

    @property
    def differentiates(self) -> bool:
        """Whether a tensor of the run requires a gradient."""
        return any(tensor.requires_grad for tensor in self._tensors.values())

    @property
    def makes_differentiable(self) -> bool:
        """Whether an operator has made a tensor that requires a gradient.

        Views that are taken while gradients are off have the flag of what they view.
        """
        made = (x for node, x in self._tensors.items() if node.op != "placeholder")
        return any(x.requires_grad and not _has_flag_of_base(x) for x in made)

    def find(self, obj: Any) -> fx.Node | None:
        """Return the node of an object, None if it has none."""
        return self._nodes.get(id(obj))

    def tensor(self, node: fx.Node) -> torch.Tensor | None:
        """Return the tensor of a node that made one."""
        return self._tensors.get(node)

    def is_new(self, tensor: torch.Tensor, name: str) -> bool:
        """Return whether the run has made what a call is about."""
        node = self._nodes.get(id(tensor))
        if node is None or node.op == "placeholder":
            return False
        return name not in RESIZES or self.is_own(tensor)

    def is_own(self, tensor: torch.Tensor) -> bool:
        """Return whether the memory of a tensor was made by the run."""
        return not self._storages.get(storage_of(tensor), True)

    def known_node(self, tensor: torch.Tensor) -> fx.Node | None:
        """Return the node of a tensor as `node` does, None if nothing explains it."""
        try:
            return self.node(tensor)
        except StopRecordingError:
            return None

    def first_node(self, tensor: torch.Tensor) -> fx.Node:
        """Return the input that a tensor was before anything became of it.

        Raises:
            StopRecordingError: Nothing explains where it comes from.
        """
        item = self.inputs.get(id(tensor))
        return self.node(tensor) if item is None else item.placeholder

    def storage(self, node: fx.Node) -> int | None:
        """Return the storage behind the tensor of a node, None if it has none."""
        tensor = self._tensors.get(node)
        return None if tensor is None else storage_of(tensor)

    def is_stale(self, placeholder: fx.Node) -> bool:
        """Return whether the tensor of a placeholder was written by the run."""
        return self.storage(placeholder) in self.written

    def is_dense(self, placeholder: fx.Node) -> bool:
        """Return whether a copy of the tensor of a placeholder has its strides."""
        tensor = self._tensors[placeholder]
        return tensor.clone().stride() == tensor.stride()

    def note_writes(self, node: fx.Node, written: set[int], random: bool) -> None:
        """Take note of the memory that an operator has written."""
        if any(storage < 0 for storage in written):
            raise StopRecordingError("tensor-write", "a tensor without a storage")
        maybe = (self._shared.get(storage, ()) for storage in written)
        known = written.union(*maybe) & self._storages.keys()
        if known or random:
            node.meta["effect"] = True
        self.draws |= random
        external = {storage for storage in known if self._storages[storage]}
        if random:
            node.meta["draws"] = True
        node.meta["writes"] = frozenset(known)
        node.meta["internal"] = not external and not random
        node.meta["refusable"] = self._may_be_leaves(external - self.written)
        self.written |= external
        self.touched |= known

    def _may_be_leaves(self, storages: set[int]) -> bool:
        """Return whether autograd may refuse a first write: that to a leaf."""
        if not storages or not torch.is_grad_enabled():
            return False
        tensors: list[torch.Tensor] = [item.node.obj for item in self.inputs.values()]
        return any(x.requires_grad and storage_of(x) in storages for x in tensors)

    def known_storages(self) -> frozenset[int]:
        """Return the storages of the tensors so far."""
        return frozenset(self._storages)

    def note_moved(self, storages: set[int]) -> None:
        """Take note of memory that an input has lost, and of what it has got."""
        self._storages.update(dict.fromkeys(storages, True))
        self.written |= storages
        self.touched |= storages

    def overlay(self, nodes: Mapping[int, fx.Node]) -> dict[int, fx.Node]:
        """Let tensors stand for other nodes for a while.

        Args:
            nodes: Nodes by the ids of their tensors, which must stay alive.

        Returns:
            What `restore` takes.
        """
        before = dict(self._nodes)
        self._nodes.update(nodes)
        return before

    def restore(self, before: dict[int, fx.Node]) -> dict[int, fx.Node]:
        """End what `overlay` began.

        Returns:
            The nodes of the tensors as they were in the meantime.
        """
        meantime, self._nodes = self._nodes, before
        for key, item in self.inputs.items():
            self._nodes.setdefault(key, item.placeholder)
        return meantime

    def forget(self, nodes: Iterable[fx.Node]) -> None:
        """Take note that nodes are no longer in the graph.

        With lifted numbers their tensors are still compared with others in the end.
        """
        for node in nodes:
            tensor = self._tensors.get(node)
            if tensor is not None and self._nodes.get(id(tensor)) is node:
                del self._nodes[id(tensor)]
            if self.scalars is None:
                self._tensors.pop(node, None)

    def bind(self, obj: Any, node: fx.Node) -> None:
        """Let a node stand for a tensor or a list of tensors."""
        self._nodes[id(obj)] = node
        if isinstance(obj, torch.Tensor):
            self._tensors[node] = obj

    def replace(self, tensor: torch.Tensor, node: fx.Node) -> None:
        """Let a node stand for a tensor whose node is hidden.

        What has become of the tensor since then, an `if` that gave it or a write, has
        a node that stays.
        """
        self._tensors[node] = tensor
        self._nodes.setdefault(id(tensor), node)

    def rebind(self, tensor: torch.Tensor, node: fx.Node, other: torch.Tensor) -> None:
        """Let a tensor stand for a node that may as well give another tensor."""
        self._nodes[id(tensor)] = node
        self._tensors[node] = tensor
        pair = {storage_of(tensor), storage_of(other)}
        group = pair.union(*(self._shared.get(storage, ()) for storage in pair))
        self._shared.update(dict.fromkeys(group, group))
        for storage in group:
            self._storages.setdefault(storage, False)

    def register(self, node: fx.Node, result: Any) -> bool:
        """Bind the tensors of a result to nodes; False if there is none."""
        if self.scalars is not None:
            self.scalars.note_result(node, result)
        if isinstance(result, torch.Tensor):
            self._bind(result, node)
            return True
        if not isinstance(result, (tuple, list)):
            return False
        self.session.graph.adopt(result)
        return any(
            [
                self.register(self._part(node, index), item)
                for index, item in enumerate(result)
                if item is not None
            ]
        )

    def _part(self, node: fx.Node, index: int) -> fx.Node:
        part = self.graph.call_function(operator.getitem, (node, index))
        self.shapes.part(node, part)
        return part

    def _bind(self, tensor: torch.Tensor, node: fx.Node) -> None:
        if type(tensor) not in PLAIN_TENSORS:
            raise StopRecordingError("tensor-subclass", type(tensor).__qualname__)
        if id(tensor) in self.inputs:
            return
        if is_leaf_with_gradient(tensor):
            node.meta["leaf"] = True
        if id(tensor) in self._nodes:
            note_layout(self._nodes[id(tensor)], tensor)
            return
        known = self.session.graph.find(tensor)
        if known is not None and known.external:
            return
        self.session.graph.bear(tensor)
        self._nodes[id(tensor)] = node
        self._tensors[node] = tensor
        note_layout(node, tensor)
        self._storages.setdefault(storage_of(tensor), False)

    def convert(self, obj: Any) -> Any:
        """Return an argument as the graph holds it."""
        if isinstance(obj, torch.Tensor):
            return self.node(obj)
        if self.scalars is not None and isinstance(obj, (slice, tuple, list)):
            return self.scalars.convert(obj)
        if is_numpy_scalar(obj):
            return python_number(obj)
        if is_scalar(obj) or (is_identity(obj) and not isinstance(obj, type)):
            return obj
        if type(obj) is _TENSOR_KIND:
            # `x.type` takes the name as well, and code can hold it.
            return f"{obj.__module__}.{obj.__name__}"
        form = FORMS.get(type(obj))
        form = convert_sequence if isinstance(obj, (tuple, list)) else form
        if form is not None:
            return form(self.session.graph, obj, self.convert)
        if is_array(obj):
            return self._array(obj)
        if scalar_base(obj) is not None:
            read_base(self.session.graph, obj)
            return base_value(obj)
        if type(obj) is torch.Generator:
            raise StopRecordingError("random-state", "a generator as an argument")
        raise StopRecordingError("operator-argument", type(obj).__qualname__)

    def _array(self, array: Any) -> fx.Node:
        taken = self.data.operand(array, self.taker)
        if taken is None:
            return self.arrays.constant(self.graph, array, self.taker)
        return self.node(taken)

    def without_data(
        self, func: Any, args: Any, kwargs: Any, result: Any
    ) -> Call | None:
        """Return a call that makes the same tensor without an array or changing data.

        None where the result has become an input of the graph.

        Raises:
            StopRecordingError: There is none.
        """
        if func is torch.asarray:
            func, args, kwargs = of_asarray(args, kwargs)
        if args and is_array(args[0]) and not {*kwargs} - {"dtype"}:
            call: Call | None = self.arrays.of_twin(func, args[0], result)
            if call is not None:
                return call
        made = self.data.replaced(func, args, kwargs, result)
        if made is None:
            return self.arrays.replaced(func, args, kwargs, result)
        if made[0] is None:
            self.node(result)
            return None
        return made

    def node(self, tensor: torch.Tensor) -> fx.Node:
        """Return the node of a tensor; one from before the run becomes an input.

        Raises:
            StopRecordingError: Nothing explains where it comes from.
        """
        node = self._nodes.get(id(tensor))
        if node is not None:
            return node
        if type(tensor) not in PLAIN_TENSORS:
            raise StopRecordingError("tensor-subclass", type(tensor).__qualname__)
        if storage_of(tensor) < 0:
            raise StopRecordingError("operator-argument", f"a {tensor.layout} tensor")
        if tensor.is_nested:
            raise StopRecordingError("operator-argument", "a nested tensor")
        known = self.session.graph.find(tensor)
        if known is None or not known.external:
            raise StopRecordingError("unknown-tensor", type(tensor).__qualname__)
        if id(tensor) in self.inputs:
            # It has stood for a result that is gone: what it is now is not known.
            raise StopRecordingError("tensor-value", "a tensor that a branch chose")
        if tensor.requires_grad and storage_of(tensor) in self.written:
            # Whether it did before is not known: a write to another may have made it.
            raise StopRecordingError("tensor-write", "memory of a tensor met later")
        path = self.session.graph.paths.of(known)
        placeholder = self.graph.placeholder(identifier_of(path))
        self.inputs[id(tensor)] = GraphInput(known, placeholder)
        self._nodes[id(tensor)] = placeholder
        self._tensors[placeholder] = tensor
        note_layout(placeholder, tensor)
        self._storages[storage_of(tensor)] = True
        self.replacements.note_input(tensor)
        return placeholder


def _has_flag_of_base(tensor: torch.Tensor) -> bool:
    return tensor._base is not None and is_leaf_with_gradient(tensor)
