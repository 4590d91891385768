"""Owns the recording of torch calls as a torch-level operator graph."""

from __future__ import annotations

import operator
import os
import re
import types
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import fx
from torch.overrides import TorchFunctionMode

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.session import Session
from magweld.frontend.operators.kinds import (
    REFUSALS,
    CallKind,
    kind_of,
    name_of,
)
from magweld.frontend.operators.predicates import Predicate, build_predicate
from magweld.frontend.operators.targets import call_of
from magweld.frontend.operators.watch import OperatorWatch, storage_of
from magweld.frontend.rules.natives import native_name
from magweld.frontend.state.contents import elements, read_all
from magweld.frontend.state.paths import path_of
from magweld.frontend.state.refgraph import Node, Where
from magweld.frontend.state.values import is_identity, is_scalar

# Native functions of torch that can only act through operators.
_OPERATOR_HOMES: Final = (
    "torch._VariableFunctionsClass.",
    "torch._C._fft.",
    "torch._C._linalg.",
    "torch._C._nested.",
    "torch._C._nn.",
    "torch._C._sparse.",
    "torch._C._special.",
    "torch._C._set_grad_enabled",
)

PLAIN_TENSORS: Final = (torch.Tensor, torch.nn.Parameter)


@dataclass(frozen=True)
class GraphInput:
    """A tensor that the graph reads and that existed before the run.

    Attributes:
        node: Its node in the RefGraph, which knows the path.
        placeholder: Its placeholder, None if only shape or layout was used.
    """

    node: Node
    placeholder: fx.Node | None


class OperatorRecorder(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Records every torch call of a run; the operator layer of its session.

    Attributes:
        serial: Number of calls seen.
        last: Name of the last one.
        library: Folder of torch.
        graph: The operator graph so far, without outputs.
        predicates: Values of tensors that decided about the run.
        written: Storages that were there before the run and were written.
    """

    def __init__(self, watch: OperatorWatch) -> None:
        super().__init__()
        self.serial = 0
        self.last = ""
        self.library = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.graph = fx.Graph()
        self.predicates: list[Predicate] = []
        self.written: set[int] = set()
        self._watch = watch
        self._session: Session | None = None
        self._inputs: dict[int, GraphInput] = {}
        self._nodes: dict[int, fx.Node] = {}
        self._tensors: dict[fx.Node, torch.Tensor] = {}
        self._storages: dict[int, bool] = {}
        self._forms: list[tuple[torch.Tensor, tuple[Any, ...]]] = []

    def attach(self, session: Session) -> None:
        """Set the session that knows where objects come from."""
        self._session = session

    def is_tensor(self, kind: type) -> bool:
        """See `OperatorLayer.is_tensor`."""
        return issubclass(kind, torch.Tensor)

    def is_operator(self, native: Any) -> bool:
        """See `OperatorLayer.is_operator`."""
        owner = getattr(native, "__objclass__", None)
        if owner is not None:
            return issubclass(torch.Tensor, owner) and owner is not object
        if type(native) is not types.BuiltinFunctionType:
            return False
        return native_name(native).startswith(_OPERATOR_HOMES)

    @property
    def inputs(self) -> list[GraphInput]:
        """Tensors from before the run that matter, in order of first use."""
        return list(self._inputs.values())

    def output_node(self, obj: Any) -> fx.Node | None:
        """Return the node of a tensor that the run made, None for anything else."""
        node = self._nodes.get(id(obj))
        return None if node is None or node.op == "placeholder" else node

    def check_inputs(self) -> None:
        """Refuse a run that changed form or flags of its inputs.

        Raises:
            StopRecordingError: An input is no longer what the guards would test.
        """
        for tensor, form in self._forms:
            if _form_of(tensor) != form:
                raise StopRecordingError("tensor-write", "form of an input")

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run one torch call and record it."""
        kwargs = kwargs or {}
        session = self._session
        if session is None or session.stopped is not None:
            return func(*args, **kwargs)
        quiet, session.quiet = session.quiet, session.quiet or session.current
        self._watch.reset()
        try:
            result = func(*args, **kwargs)
            self._record(session, func, args, kwargs, result)
            return result
        except StopRecordingError as stop:
            session.stop(stop)
            return result
        except Exception:
            session.stop(StopRecordingError("operator-raised", name_of(func)))
            raise
        finally:
            session.quiet = quiet

    def _record(
        self, session: Session, func: Any, args: Any, kwargs: Any, result: Any
    ) -> None:
        self.serial += 1
        self.last = name = name_of(func)
        kind = kind_of(name, args)
        refusal = REFUSALS.get(kind)
        if refusal is not None:
            raise StopRecordingError(refusal, name)
        if self._watch.dynamic:
            raise StopRecordingError("dynamic-shape", name)
        if kind is CallKind.CHECK and not self._watch.reads:
            return
        if kind is CallKind.METADATA:
            self._convert(args)
            session.graph.adopt(result)
            return
        node = self._create(func, name, args, kwargs)
        if kind is CallKind.VALUE or self._watch.reads:
            self._read_value(node, name, result)
            return
        self._note_effects(node)
        if kind is CallKind.STATE:
            node.meta["effect"] = True
            return
        if result is None and node.meta.get("effect"):
            return
        if not self._register(node, result):
            raise StopRecordingError("tensor-value", name)

    def _create(self, func: Any, name: str, args: Any, kwargs: Any) -> fx.Node:
        fx_args = self._convert(tuple(args))
        fx_kwargs = {key: self._convert(value) for key, value in kwargs.items()}
        kind, target, arguments = call_of(func, name, fx_args)
        node = self.graph.create_node(kind, target, arguments, fx_kwargs)
        where = self._where()
        node.meta["where"] = "" if where is None else str(where)
        return node

    def _where(self) -> Where | None:
        return None if self._session is None else self._session.where()

    def _read_value(self, node: fx.Node, name: str, result: Any) -> None:
        if type(result) not in (bool, int, float):
            raise StopRecordingError("tensor-value", name)
        predicate = build_predicate(self.graph, node, result, self._reads_written)
        if predicate is None:
            raise StopRecordingError("tensor-value", name)
        self.predicates.append(predicate)
        self.graph.erase_node(node)

    def _reads_written(self, placeholder: fx.Node) -> bool:
        tensor = self._tensors[placeholder]
        return storage_of(tensor) in self.written

    def _note_effects(self, node: fx.Node) -> None:
        known = self._watch.written & self._storages.keys()
        if known or self._watch.random:
            node.meta["effect"] = True
        self.written |= {storage for storage in known if self._storages[storage]}

    def _register(self, node: fx.Node, result: Any) -> bool:
        """Bind the tensors of a result to nodes; False if there is none."""
        if isinstance(result, torch.Tensor):
            self._bind(result, node)
            return True
        if not isinstance(result, (tuple, list)):
            return False
        assert self._session is not None, "recording needs a session"
        self._session.graph.adopt(result)
        return any(
            [
                self._register(
                    self.graph.call_function(operator.getitem, (node, index)), item
                )
                for index, item in enumerate(result)
                if item is not None
            ]
        )

    def _bind(self, tensor: torch.Tensor, node: fx.Node) -> None:
        assert self._session is not None, "recording needs a session"
        if type(tensor) not in PLAIN_TENSORS:
            raise StopRecordingError("tensor-subclass", type(tensor).__qualname__)
        if id(tensor) in self._nodes or id(tensor) in self._inputs:
            return
        known = self._session.graph.find(tensor)
        if known is not None and known.external:
            return
        self._session.graph.adopt(tensor)
        self._nodes[id(tensor)] = node
        self._tensors[node] = tensor
        self._storages.setdefault(storage_of(tensor), False)

    def _convert(self, obj: Any) -> Any:
        """Return an argument as the graph holds it."""
        if isinstance(obj, torch.Tensor):
            return self._tensor(obj)
        if is_scalar(obj) or (is_identity(obj) and not isinstance(obj, type)):
            return obj
        if type(obj) is slice:
            return slice(*map(self._convert, (obj.start, obj.stop, obj.step)))
        if isinstance(obj, (tuple, list)):
            return self._convert_sequence(obj)
        if type(obj) is torch.Generator:
            raise StopRecordingError("random-state", "a generator as an argument")
        raise StopRecordingError("operator-argument", type(obj).__qualname__)

    def _convert_sequence(self, obj: Any) -> Any:
        assert self._session is not None, "recording needs a session"
        graph = self._session.graph
        if graph.find(obj) is not None:
            read_all(graph, obj)
        converted = [self._convert(item) for item in elements(obj)]
        return converted if isinstance(obj, list) else tuple(converted)

    def _tensor(self, tensor: torch.Tensor) -> fx.Node:
        node = self._nodes.get(id(tensor))
        if node is not None:
            return node
        assert self._session is not None, "recording needs a session"
        if type(tensor) not in PLAIN_TENSORS:
            raise StopRecordingError("tensor-subclass", type(tensor).__qualname__)
        known = self._session.graph.find(tensor)
        if known is None or not known.external:
            raise StopRecordingError("unknown-tensor", self.last)
        placeholder = self.graph.placeholder(_identifier(known))
        self._inputs[id(tensor)] = GraphInput(known, placeholder)
        self._nodes[id(tensor)] = placeholder
        self._tensors[placeholder] = tensor
        self._storages[storage_of(tensor)] = True
        self._forms.append((tensor, _form_of(tensor)))
        return placeholder


def _form_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.shape, tensor.stride(), tensor.dtype, tensor.requires_grad)


def _identifier(node: Node) -> str:
    name = re.sub(r"\W+", "_", path_of(node)).strip("_")
    return name if name and not name[0].isdigit() else f"input_{name}"
