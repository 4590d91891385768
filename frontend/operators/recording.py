"""Owns what a run has recorded of torch so far: graph, tensors, values that decided."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import CellType
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from magweld.frontend.monitor.hooks import OperatorLayer
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.predicates import Memory, Predicate
from magweld.frontend.operators.tensors import GraphInput, TensorMap
from magweld.frontend.operators.watch import OperatorWatch
from magweld.frontend.state.modules import named_modules
from magweld.frontend.state.nodes import Node, PlaceTexts
from magweld.frontend.state.paths import Paths

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

    def __init__(self, watch: OperatorWatch, session: Session) -> None:
        self.library = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.graph = fx.Graph()
        self.predicates: list[Predicate] = []
        self.tensors = TensorMap(self.graph, session)
        self.watch = watch
        self.operands: Operands | None = None
        self._session = session
        self._modules = ModuleNames()
        self._places = PlaceTexts()
        self._tracebacks: dict[tuple[str, ...], str] = {}

    @property
    def differentiates(self) -> bool:
        """Whether a tensor of the run requires a gradient."""
        return self.tensors.differentiates

    @property
    def paths(self) -> Paths:
        """How the objects of the run are reached."""
        return self._session.graph.paths

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
        where = self._session.where()
        return "" if where is None else self._places.of(where)

    def place(self) -> dict[str, Any]:
        """Return where the program is: the user's line, frames and modules.

        The importer hands frames and modules on to the operators that a node becomes.
        """
        observers = self._session.active()
        return {
            "where": self.where_text(),
            "stack_trace": self._frames_text(observers),
            "nn_module_stack": self._modules.stack(observers),
        }

    def _frames_text(self, observers: Sequence[Observer]) -> str:
        """Return the observed frames as a traceback shows them, the outermost first.

        Frames of torch only count where there are no others.
        """
        known = (observer.where() for observer in observers)
        places = tuple(self._places.of(where) for where in known if where is not None)
        text = self._tracebacks.get(places)
        if text is None:
            text = self._tracebacks[places] = _traceback(places, self.library)
        return text

    def memory(self) -> Memory:
        """Return what the operators so far do to memory."""
        return Memory(
            self.tensors.storage, self.tensors.is_stale, self.tensors.is_dense
        )


def _traceback(places: Sequence[str], library: str) -> str:
    own = [place for place in places if not place.startswith(library)]
    parts = (place.rpartition(":") for place in dict.fromkeys(own or places[-1:]))
    return "\n".join(f'File "{file}", line {line}' for file, _, line in parts)


class ModuleNames:
    """Names of modules below the outermost one that runs, as `named_modules` has them.

    They are read from the objects themselves: a class of the user may have an
    `__getattr__` or a `named_modules` of its own, which would be part of the run.
    """

    def __init__(self) -> None:
        self._root: int | None = None
        self._names: dict[int, str] = {}
        # By the frame that got it: one that has begun is asked once.
        self._entries: dict[Observer, tuple[str, str] | None] = {}

    def stack(self, observers: Sequence[Observer]) -> dict[str, tuple[str, str]]:
        """Return the modules whose methods run, the outermost first.

        The form is that of `nn_module_stack` in exported programs: (name, class) by
        name. The outermost module has no name; one that is not below it is left out.
        """
        found: dict[str, tuple[str, str]] = {}
        for observer in observers:
            if observer not in self._entries:
                self._entries[observer] = self._entry(observer)
            entry = self._entries[observer]
            if entry is not None:
                found[entry[0]] = entry
        return found

    def _entry(self, observer: Observer) -> tuple[str, str] | None:
        """Return name and class of the module whose method a frame runs, if any."""
        module = _first_argument(observer)
        if module is None:
            return None
        if self._root is None:
            names = {id(one): name for one, name in named_modules(module)}
            self._root, self._names = id(module), names
        name = self._names.get(id(module))
        kind = type(module)
        text = f"{kind.__module__}.{kind.__qualname__}"
        return None if name is None else (name, text)


def _first_argument(observer: Observer) -> nn.Module | None:
    """Return what a frame got first, if that is a module and still there."""
    code = observer.code
    if observer.frame is None or not code.co_argcount:
        return None
    value = observer.session.reader.slot(observer.frame, 0)
    if type(value) is CellType:
        try:
            value = value.cell_contents
        except ValueError:
            return None  # it was deleted
    return value if issubclass(type(value), nn.Module) else None
