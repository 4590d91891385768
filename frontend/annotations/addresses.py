"""Annotation of `data_ptr`: addresses that the program only compares with each other.

Where memory lies differs from call to call; which tensors share it does not. So values
of addresses do not count that are compared while variables hold both tensors.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Final

import torch
from torch import fx

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.addresses import Address, AddressHolding
from magweld.frontend.monitor.annotation import Entries, NativeCall
from magweld.frontend.monitor.code_table import looks_at_frames, slot_count
from magweld.frontend.monitor.hooks import sites_of
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.predicates import build_predicate
from magweld.frontend.operators.recording import Recording
from magweld.frontend.operators.tensors import PLAIN_TENSORS
from magweld.frontend.rules.attributes import expect_operator
from magweld.frontend.session.session import Session
from magweld.storages import storage_of

_DEVICES: Final = ("cpu", "cuda")


class _AddressOf(Address):
    """Where a tensor began when the program asked for it.

    Args:
        session: The run.
        tensor: The tensor.
    """

    def __init__(self, session: Session, tensor: torch.Tensor) -> None:
        super().__init__()
        operators = session.operators
        assert isinstance(operators, Recording), "operators are recorded"
        self._session, self._recording = session, operators
        self._tensor, self._storage = tensor, storage_of(tensor)
        self._value, self._place = tensor.data_ptr(), operators.place()

    def settles(self, other: Address, frame: FrameType, same: bool) -> bool:
        with torch._C.DisableTorchFunction():
            return isinstance(other, _AddressOf) and self._settles(other, frame, same)

    def _settles(self, other: _AddressOf, frame: FrameType, same: bool) -> bool:
        if not (self._is_held(frame) and other._is_held(frame)):
            return False
        if self._tensor is other._tensor:
            return same
        if self._storage == other._storage and self._is_own():
            return not self._line().isdisjoint(other._line())
        if self._is_own() or other._is_own():
            return not same
        return self._guards(same, self, other)

    def check(self) -> None:
        """Guard the address of a tensor from before the run that was used otherwise.

        Raises:
            StopRecordingError: The run has made the tensor.
        """
        if self.is_used and not self._guards(self._value, self):
            raise StopRecordingError("tensor-value", "data_ptr")

    def _is_held(self, frame: FrameType) -> bool:
        """Return whether a variable holds the tensor: its memory is no other's then."""
        reader, count = self._session.reader, slot_count(frame.f_code)
        held = any(reader.slot(frame, slot) is self._tensor for slot in range(count))
        return held and self._tensor.data_ptr() == self._value

    def _is_own(self) -> bool:
        """Return whether the run has made the memory, for this storage alone."""
        made = self._recording.tensors.is_own(self._tensor)
        return made and self._tensor.untyped_storage().resizable()

    def _line(self) -> set[fx.Node]:
        """Return the operators that have made the tensor, of one tensor each.

        How two views lie follows from these if one of them is common; where others
        begin may follow from values.
        """
        node = self._recording.tensors.find(self._tensor)
        line = set() if node is None else {node}
        while node is not None and len(node.all_input_nodes) == 1:
            (node,) = node.all_input_nodes
            line.add(node)
        return line

    def _guards(self, value: Any, *addresses: _AddressOf) -> bool:
        """Have hits ask for addresses of inputs again; False if they cannot.

        Args:
            value: That of one address, or whether two are the same.
            *addresses: One or two.
        """
        graph, tensors = self._recording.graph, self._recording.tensors
        if any(tensors.is_own(one._tensor) for one in addresses):
            return False
        nodes = [tensors.find(one._tensor) for one in addresses]
        made = [graph.call_method("data_ptr", (node,)) for node in nodes]
        if len(made) == 2:
            made.append(graph.call_method("__eq__", tuple(made)))
        for node in made:
            node.meta.update(self._place)
        predicate = build_predicate(graph, made[-1], value, self._recording.memory())
        for node in reversed(made):
            graph.erase_node(node)
        # A copy lies elsewhere.
        if predicate is None or predicate.copies:
            return False
        self._recording.rely_on(predicate)
        return True


def _data_ptr(observer: Observer, call: NativeCall) -> None:
    """`Tensor.data_ptr`."""
    with torch._C.DisableTorchFunction():
        follows = _follows(observer, call)
    if not follows:
        expect_operator(observer, call.name)
        return
    session, (tensor,) = observer.session, call.args
    session.operators.read_form(tensor)
    with torch._C.DisableTorchFunction():
        address = _AddressOf(session, tensor)
    trail = sites_of(session.active(), session.control)

    def check() -> None:
        with torch._C.DisableTorchFunction():
            try:
                address.check()
            except StopRecordingError:
                # The next run is split here.
                session.trail = trail
                raise

    def note(observer: Observer, stack: list[Any]) -> None:
        session.operators.show_modes()
        session.graph.adopt(stack[-1])
        observer.drawn += (AddressHolding(address, len(stack) - 1),)

    session.graph.checks.append(check)
    session.operators.hide_modes()
    observer.after = note


def _follows(observer: Observer, call: NativeCall) -> bool:
    """Return whether the address may be all that the program wants to compare."""
    session = observer.session
    if call.kwargs or len(call.args) != 1 or looks_at_frames(observer.code):
        return False
    (tensor,) = call.args
    if type(tensor) not in PLAIN_TENSORS or session.in_branch:
        return False
    if session.operators.in_opaque or tensor.layout is not torch.strided:
        return False
    if session.graph.lifting is not None:
        # What an operator makes a view of may depend on sizes.
        return False
    # Tensors without elements all begin at zero.
    return tensor.device.type in _DEVICES and tensor.numel() > 0


ADDRESSES: Final[Entries] = ((torch.Tensor.data_ptr, _data_ptr),)
