"""Owns what guards test in one step: modes of torch, classes, tensors, memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch._C._dynamo.guards import GlobalStateGuard

from magweld.codegen.words_check import words_check
from magweld.frontend.guards.forms import quick_check, torch_guards
from magweld.frontend.guards.guard import Mismatch, Unfit
from magweld.frontend.operators.torch_state import beside_global_state, torch_state
from magweld.frontend.state.mro import find_after, find_in_mro, find_own
from magweld.frontend.state.plans import tag_cell, tags_work
from magweld.frontend.state.values import is_scalar, same_scalar
from magweld.storages import neighbours, storage_of

# Bits of the word that a tag begins.
_TAG: Final = (1 << 32) - 1


@dataclass(frozen=True)
class ClassLookup:
    """One lookup that must find the same again.

    Attributes:
        cls: Class whose method resolution order is searched.
        key: Name, or (start, name) for a search behind `start`, or (None, name) for
            one in the class alone.
        value: What was found, or ABSENT.
    """

    cls: type
    key: Any
    value: Any

    def holds(self) -> bool:
        """Return whether the lookup finds the same now."""
        if type(self.key) is not tuple:
            found = find_in_mro(self.cls, self.key)
        elif self.key[0] is None:
            found = find_own(self.cls, self.key[1])
        else:
            found = find_after(self.cls, *self.key)
        if found is self.value:
            return True
        return is_scalar(self.value) and same_scalar(self.value, found)


def _unknown() -> bool:
    return False


class ClassGuards:
    """All class lookups of a record as one check.

    A class whose version tag is as at the last success needs no second look.
    """

    def __init__(self, lookups: list[ClassLookup]) -> None:
        self.lookups = lookups
        by_class: dict[int, list[int]] = {}
        for index, item in enumerate(lookups):
            by_class.setdefault(id(item.cls), []).append(index)
        self._groups = list(by_class.values())
        self._classes = [lookups[group[0]].cls for group in self._groups]
        self._cells = [tag_cell(cls) for cls in self._classes] if tags_work() else []
        self._tags = [0] * len(self._groups)
        # Whether all tags are those of the last success.
        self._stay: Callable[[], bool] = _unknown

    def check(self) -> int:
        """Return -1 when all lookups hold, else the number of one that does not."""
        if self._stay():
            return -1
        now = [cell.value for cell in self._cells]
        if now == self._tags and 0 not in now and now:
            addresses = list(map(ctypes.addressof, self._cells))
            words = [ctypes.c_uint64.from_address(one).value for one in addresses]
            if [word & _TAG for word in words] == now:
                self._stay = words_check(addresses, words)
            return -1
        self._stay = _unknown
        for position, group in enumerate(self._groups):
            if now and now[position] and now[position] == self._tags[position]:
                continue
            for index in group:
                if not self.lookups[index].holds():
                    return index
            if self._cells:
                self._refresh(position)
        return -1

    def _refresh(self, position: int) -> None:
        # An ordinary lookup makes the interpreter assign a tag if there is none.
        type.__getattribute__(self._classes[position], "__doc__")
        self._tags[position] = self._cells[position].value


class StateCheck:
    """Whether the modes of torch are those of a moment.

    Most of them are compared by a guard of torch's, in one call.
    """

    def __init__(self, state: tuple[Any, ...]) -> None:
        """Take the modes as `torch_state` gave them at that moment."""
        self._state = state
        self._known: tuple[GlobalStateGuard, tuple[Any, ...]] | None = None

    def holds(self) -> bool:
        """Return whether they are."""
        known = self._known
        if known is not None and known[0].check():
            return beside_global_state() == known[1]
        held = torch_state() == self._state
        if held:
            self._known = GlobalStateGuard(), beside_global_state()
        return held


class TensorCheck:
    """Class, dtype, device, layout, shape, strides, flags; pairwise distinct.

    Attributes:
        check: Whether tensors fit, of which none is nested.
        quick: What tells that most often in less time, None if nothing does.
    """

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        names: list[str],
        lifted: Sequence[frozenset[int]] = (),
    ) -> None:
        """Take note of the form of tensors.

        Args:
            lifted: Dimensions of each that are not checked here; the strides of such a
                tensor are not either.
        """
        self._names = names
        self._lifted = lifted or [frozenset()] * len(tensors)
        self._shapes = [tuple(tensor.shape) for tensor in tensors]
        self._kinds = [_kind_of(tensor) for tensor in tensors]
        self._guards = torch_guards(tensors, self._lifted)
        self.check = self._guards.check
        self.quick = quick_check(tensors, self._lifted)

    def reason(self, *tensors: torch.Tensor) -> Unfit:
        """Return why tensors do not fit, which is found out when it is asked for."""
        return Unfit(self._mismatch, tensors)

    def _mismatch(self, *tensors: torch.Tensor) -> Mismatch:
        verdict = self._guards.check_verbose(*tensors, tensor_check_names=self._names)
        lifts: list[str] = []
        only_sizes = True
        for number, tensor in enumerate(tensors):
            shape, dims = self._shapes[number], self._lifted[number]
            if not isinstance(tensor, torch.Tensor) or tensor.dim() != len(shape):
                only_sizes = False
                continue
            only_sizes &= _kind_of(tensor) == self._kinds[number]
            sizes = zip(tensor.shape, shape, strict=True)
            for dim, (now, before) in enumerate(sizes):
                if dim in dims or now == before:
                    continue
                if min(now, before) > 1:
                    lifts.append(f"{self._names[number]}.shape[{dim}]")
                else:
                    only_sizes = False
        return Mismatch(str(verdict), tuple(lifts), only_sizes and bool(lifts))


def _kind_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return what a tensor is beside its sizes and strides."""
    kind = type(tensor), tensor.dtype, tensor.device, tensor.layout
    return (*kind, tensor.requires_grad)


class OverlapCheck:
    """How inputs share memory with inputs that the graph writes."""

    def __init__(self, tensors: Sequence[torch.Tensor], written: set[int]) -> None:
        self._written = [i for i, t in enumerate(tensors) if storage_of(t) in written]
        self._pattern = neighbours(tensors, self._written)

    def check(self, *tensors: torch.Tensor) -> bool:
        """Return whether the same inputs share memory as in the recorded run."""
        return neighbours(tensors, self._written) == self._pattern
