"""Owns forms of tensors: those that follow from values, those that inputs had."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import torch
from torch import fx

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.kinds import RANKS, SIZES, CallKind, name_of
from magweld.frontend.operators.watch import OperatorWatch
from magweld.storages import is_alias, storage_of


class _Before(NamedTuple):
    """A tensor just before other memory is assigned to it."""

    tensor: torch.Tensor
    storage: int
    form: tuple[Any, ...]
    same: bool


class Replacements:
    """Inputs of one run, and assignments of memory to them."""

    def __init__(self) -> None:
        self._inputs: dict[int, tuple[torch.Tensor, tuple[Any, ...]]] = {}
        self._before: _Before | None = None
        self._flags: dict[int, tuple[Any, ...]] = {}
        self._moved: list[tuple[torch.Tensor, int]] = []

    def note_input(self, tensor: torch.Tensor) -> None:
        """Take note of a tensor from before the run; the last call was its first."""
        flags = self._flags.get(id(tensor))
        self._inputs.setdefault(id(tensor), (tensor, flags or _flags_of(tensor)))

    def note(self, func: Any, args: Any) -> None:
        """Take note of a torch call that is about to happen."""
        self._before = None
        first: Any = args[0] if args else None
        written = first if type(first) in (tuple, list) else (first,)
        self._flags = {
            id(tensor): _flags_of(tensor)
            for tensor in written
            if type(tensor) is torch.Tensor and _has_form(tensor)
        }
        if name_of(func) == "set data":
            tensor, value = args
            storage = storage_of(tensor)
            if storage >= 0:
                same = is_alias(tensor, value)
                self._before = _Before(tensor, storage, _form_of(tensor), same)

    def kind(self, kind: CallKind) -> CallKind:
        """Return what the call is, which would be a write to a tensor of the caller."""
        before = self._before
        if before is None:
            return kind
        if before.same:
            return CallKind.METADATA  # the memory that it has, e.g. `x.data += y`
        same_form = _form_of(before.tensor) == before.form
        return CallKind.MEMORY if same_form else kind

    def close(self) -> set[int]:
        """Return the storages concerned, once the call is recorded."""
        assert self._before is not None, "memory was replaced"
        tensor, storage = self._before.tensor, self._before.storage
        self._moved.append((tensor, storage))
        return {storage, storage_of(tensor)}

    def check(self) -> None:
        """Refuse a run in which an input is no longer what the guards would test.

        Raises:
            StopRecordingError: It has another form or other flags, or it took memory
                from or gave it to another input: nothing would tell which ones share.
        """
        for tensor, flags in self._inputs.values():
            if _flags_of(tensor) not in (flags, (*flags[:-1], True)):
                raise StopRecordingError("tensor-write", "form of an input")
            for moved, storage in self._moved:
                shared = (storage, storage_of(moved))
                if tensor is not moved and storage_of(tensor) in shared:
                    raise StopRecordingError("tensor-write", "memory of two inputs")

    def before(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return an input with the flags that it had: a write may need gradients."""
        known = self._inputs.get(id(tensor))
        if known is not None and tensor.requires_grad != known[1][-1]:
            return tensor.detach()
        return tensor


def _has_form(tensor: torch.Tensor) -> bool:
    """Whether a tensor has extents and strides to ask for; a nested one has none."""
    return tensor.layout is torch.strided and not tensor.is_nested


def _flags_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (*_form_of(tensor), tensor.requires_grad)


def _form_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.shape, tensor.stride(), tensor.dtype)


# Operators that drop a dimension when its size is one.
_SQUEEZES: Final = ("squeeze", "squeeze_copy")
# Operators whose result has a size that follows from values, unless it is given: at
# which place, and under which name.
_SIZE_GIVEN: Final = {
    "one_hot": (1, "num_classes"),
    "repeat_interleave": (4, "output_size"),
}
# Sparse tensors: operators make them of the sizes given, or those of an operand. How
# many elements they hold follows from values, and no product has a size by that.
_SPARSE_SIZE_GIVEN: Final = (2, "size")
_SPARSE_KEPT: Final = frozenset({"t", "transpose", "get T", "coalesce", "to_sparse"})
_SPARSE_PRODUCTS: Final = frozenset(
    {"matmul", "__matmul__", "mm", "_sparse_mm", "to_dense"}
)
# Questions about such a tensor whose answers follow from its sizes.
_SPARSE_ANSWERS: Final = frozenset(
    {"get shape", "size", "numel", "nelement", "__len__"}
)
# Operators that read memory for the sizes of their results, which no operator below
# tells: at which place there is a tensor then, and where a size that is given instead.
_READS_SIZES: Final = {
    "tensor_split": ((1, "tensor_indices_or_sections"), None),
    "sparse_coo_tensor": ((0, "indices"), _SPARSE_SIZE_GIVEN),
    "sparse_compressed_tensor": ((0, "compressed_indices"), (3, "size")),
    "sparse_csr_tensor": ((0, "crow_indices"), (3, "size")),
    "sparse_csc_tensor": ((0, "ccol_indices"), (3, "size")),
    "sparse_bsr_tensor": ((0, "crow_indices"), (3, "size")),
    "sparse_bsc_tensor": ((0, "ccol_indices"), (3, "size")),
}
# Operators whose tuple has one tensor per dimension, whatever the sizes are.
_PER_DIMENSION: Final = ("where", "nonzero")


class Shapes:
    """Tensors of a run whose shape follows from values, by node.

    The graph may compute them; what Python learns of their sizes is a value.
    """

    def __init__(self) -> None:
        self._open: set[fx.Node] = set()
        self._rankless: set[fx.Node] = set()
        # Their elements are as many as values say, their sizes are known.
        self._sparse: set[fx.Node] = set()

    def __bool__(self) -> bool:
        """Whether there are such tensors."""
        return bool(self._open or self._sparse)

    def is_open(self, node: fx.Node) -> bool:
        """Return whether the shape of a node follows from values."""
        return node in self._open or node in self._sparse

    def decides(self, name: str, inputs: list[fx.Node]) -> bool:
        """Return whether the answer to a question about tensors is a value."""
        if name in SIZES:
            known = self._sparse if name in _SPARSE_ANSWERS else ()
            return any(self.is_open(node) and node not in known for node in inputs)
        return name in RANKS and any(node in self._rankless for node in inputs)

    def note(self, node: fx.Node, name: str, watch: OperatorWatch, result: Any) -> None:
        """Take note of the shapes of the results of one operator.

        Raises:
            StopRecordingError: The number of results follows from values.
        """
        inputs = node.all_input_nodes
        is_open = any(map(self.is_open, inputs))
        follows = watch.dynamic or watch.reads or _reads_sizes(node, name)
        by_values = follows and not given_size(node, name)
        if not is_open and not by_values:
            return
        if self._is_sparse(node, name, result):
            self._sparse.add(node)
            return
        if self._drops_elements(name, inputs, result):
            return
        rankless = any(item in self._rankless for item in inputs)
        if name in _SQUEEZES and is_open:
            rankless = True
        if type(result) in (list, tuple) and name not in _PER_DIMENSION:
            if watch.listed or (by_values and _gives_list(name)):
                raise StopRecordingError("dynamic-shape", name)
        if isinstance(result, torch.Tensor) and result.dim() == 0 and not rankless:
            return
        self._open.add(node)
        if rankless:
            self._rankless.add(node)

    def _drops_elements(self, name: str, inputs: list[fx.Node], result: Any) -> bool:
        """Return whether the sizes of sparse tensors give all that a result has."""
        if name not in _SPARSE_PRODUCTS or any(node in self._open for node in inputs):
            return False
        return isinstance(result, torch.Tensor) and result.layout is torch.strided

    def _is_sparse(self, node: fx.Node, name: str, result: Any) -> bool:
        """Return whether a result is sparse, of a size that follows from no value."""
        if not isinstance(result, torch.Tensor) or result.layout is torch.strided:
            return False
        if name == "sparse_coo_tensor":
            return _given(node, *_SPARSE_SIZE_GIVEN) is not None
        kept = any(source in self._open for source in node.all_input_nodes)
        return name in _SPARSE_KEPT and not kept

    def part(self, whole: fx.Node, part: fx.Node) -> None:
        """Take note that a node is one of the results of another."""
        for group in (self._open, self._rankless):
            if whole in group:
                group.add(part)


def _reads_sizes(node: fx.Node, name: str) -> bool:
    """Return whether an operator takes the size of its results from memory."""
    if name not in _READS_SIZES:
        return False
    tensor, size = _READS_SIZES[name]
    return isinstance(_given(node, *tensor), fx.Node) and (
        size is None or _given(node, *size) is None
    )


def _given(node: fx.Node, place: int, key: str) -> Any:
    return node.args[place] if place < len(node.args) else node.kwargs.get(key)


def _gives_list(name: str) -> bool:
    """Return whether torch says that an operator has a list as its result."""
    packet = getattr(torch.ops.aten, name, None)
    overloads = [] if packet is None else packet.overloads()
    schemas = [getattr(packet, overload)._schema for overload in overloads]
    return any(
        "List" in one.type.kind() for schema in schemas for one in schema.returns
    )


def given_size(node: fx.Node, name: str) -> int:
    """Return the size that an operator gets for its result; it only checks values then.

    0 if the size follows from values.
    """
    place, key = _SIZE_GIVEN.get(name, (0, ""))
    given = node.args[place] if 0 < place < len(node.args) else node.kwargs.get(key)
    return given if type(given) is int and given > 0 else 0
