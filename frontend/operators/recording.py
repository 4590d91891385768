"""Owns what a run has recorded of torch so far: graph, tensors, values that decided."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from magweld.frontend.monitor.hooks import OperatorLayer
from magweld.frontend.operators.module_names import ModuleNames
from magweld.frontend.operators.predicates import Memory, Predicate
from magweld.frontend.operators.tensors import GraphInput, TensorMap
from magweld.frontend.operators.watch import OperatorWatch
from magweld.frontend.state.nodes import Node

if TYPE_CHECKING:
    from magweld.frontend.lifting.operands import Operands
    from magweld.frontend.session.session import Session


class Recording(OperatorLayer):
    """The operators of a run.

    Attributes:
        graph: The operator graph so far, without outputs.
        predicates: Values of tensors that decided about the run.
        tensors: Which tensor is which node.
        watch: The view below autograd.
        library: Folder of torch.
        operands: Follows lifted values into operators, None if none are lifted.
    """

    def __init__(self, watch: OperatorWatch) -> None:
        self.library = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.graph = fx.Graph()
        self.predicates: list[Predicate] = []
        self.tensors = TensorMap(self.graph)
        self.watch = watch
        self.operands: Operands | None = None
        self._session: Session | None = None
        self._modules = ModuleNames()

    def attach(self, session: Session) -> None:
        """Set the session that knows where objects come from."""
        self._session = session
        self.tensors.attach(session)

    @property
    def differentiates(self) -> bool:
        """Whether a tensor of the run requires a gradient."""
        return self.tensors.differentiates

    @property
    def inputs(self) -> list[GraphInput]:
        """Tensors from before the run that matter, in order of first use."""
        return list(self.tensors.inputs.values())

    @property
    def written(self) -> set[int]:
        """Storages that were there before the run and were written."""
        return self.tensors.written

    @property
    def has_effects(self) -> bool:
        return bool(self.tensors.written) or self.tensors.draws

    def rely_on(self, predicate: Predicate) -> None:
        """Take note that the run depends on a value of a tensor."""
        if self.operands is not None and self.operands.lifts(predicate):
            return
        if predicate.placeholders:
            self.predicates.append(predicate)

    def tensors_of(self, predicate: Predicate) -> tuple[Node, ...]:
        """Return the inputs from which a value is computed."""
        inputs = {item.placeholder: item.node for item in self.inputs}
        return tuple(inputs[placeholder] for placeholder in predicate.placeholders)

    def output_node(self, obj: Any) -> fx.Node | None:
        """Return the node of a tensor that the run made, None for anything else."""
        node = self.tensors.find(obj)
        return None if node is None or node.op == "placeholder" else node

    def mark(self) -> fx.Node:
        """Return the last node so far."""
        return self.graph._root.prev

    def since(self, mark: fx.Node) -> list[fx.Node]:
        """Return the operators behind a node; placeholders are none."""
        return self.between(mark, self.mark())

    def between(self, first: fx.Node, last: fx.Node) -> list[fx.Node]:
        """Return the operators behind a node up to another one."""
        found = []
        while first is not last:
            first = first.next
            if first.op != "placeholder":
                found.append(first)
        return found

    def where_text(self) -> str:
        """Return the user's file:line, "" if there is none."""
        where = None if self._session is None else self._session.where()
        return "" if where is None else str(where)

    def frames_text(self) -> str:
        """Return the observed frames as a traceback shows them, the outermost first.

        Frames of torch only count where there are no others.
        """
        observers = () if self._session is None else self._session.active()
        places = [str(where) for observer in observers if (where := observer.where())]
        own = [place for place in places if not place.startswith(self.library)]
        return "\n".join(
            f'File "{file}", line {line}'
            for file, _, line in (
                place.rpartition(":") for place in dict.fromkeys(own or places[-1:])
            )
        )

    def module_stack(self) -> dict[str, tuple[str, str]]:
        return self._modules.stack(self._session.active()) if self._session else {}

    def _memory(self) -> Memory:
        return Memory(
            self.tensors.storage, self.tensors.is_stale, self.tensors.is_dense
        )
