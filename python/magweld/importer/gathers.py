"""Owns look-ups of rows: indices are checked through torch, rows read by kernels.

A kernel reads wherever an index points to. So before it, in every call, one pass over
the indices looks for one that is out of range; there is then the operator as the user
called it, which raises torch's error. On a GPU the pass is that operator, on one
element of each row: as in eager torch the device stops at an index out of range, and
the host does not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch.library import Library

from magweld.artifact import IndexCheck
from magweld.importer.dtypes import INDICES, is_arranged
from magweld.importer.nodes import values_of
from magweld.required_truth import REQUIRE_TRUTH

aten = torch.ops.aten

Check = Callable[..., Tensor]

# Of a node's meta what says where it comes from.
_PLACES = frozenset(
    {"original_aten", "from_node", "stack_trace", "nn_module_stack", "seq_nr"}
)
# Of tables of these types torch's kernel for sums reads one bag behind the other.
_BY_BOUNDS = frozenset({torch.float32, torch.float16, torch.bfloat16})
_MAX = 2
_SAME_INDICES = frozenset({aten._to_copy.default, aten.view.default})

IN_RANGE = "magweld_in_range"
"""Entry of the meta of a look-up whose places follow from indices that were checked."""


def _rows(table: Tensor, indices: Tensor) -> Tensor:
    found: Tensor = aten.index(table, [indices])
    return found


def _selected_rows(table: Tensor, indices: Tensor) -> Tensor:
    found: Tensor = aten.index_select(table, 0, indices)
    return found


def _embedding(table: Tensor, indices: Tensor) -> Tensor:
    return _checked(table, indices, 0, lambda: aten.embedding(table, indices))


def _index(table: Tensor, indices: Tensor) -> Tensor:
    lowest = -table.shape[0]  # negative indices count from the end
    return _checked(table, indices, lowest, lambda: _rows(table, indices))


def _index_select(table: Tensor, indices: Tensor) -> Tensor:
    return _checked(table, indices, 0, lambda: _selected_rows(table, indices))


def _checked(
    table: Tensor, indices: Tensor, lowest: int, look_up: Callable[[], Tensor]
) -> Tensor:
    # A copy, as other threads may write to the user's tensor before kernels read it.
    private = indices.clone()
    least, most = torch.aminmax(private)
    if int(least) < lowest or int(most) >= table.shape[0]:
        look_up()
        raise IndexError("index out of range in self")
    return private


def _embedding_bag(
    table: Tensor, indices: Tensor, bag: int, mode: int, padding: int
) -> Tensor:
    def look_up() -> Tensor:
        offsets = torch.arange(0, len(indices), bag, dtype=indices.dtype)
        skipped = None if padding < 0 else padding
        options = (False, mode, False, None, False, skipped)
        return torch.embedding_bag(table, indices, offsets, *options)[0]

    return _checked(table, indices, 0, look_up)


def _places(
    indices: Tensor,
    rows: int,
    shape: Sequence[int],
    every: Sequence[Tensor | None],
    select: bool,
) -> Tensor:
    private = indices.clone()
    least, most = torch.aminmax(private)
    if (0 if select else -rows) <= int(least) and int(most) < rows:
        return private
    # What torch raises follows from the extents: elements need not be there.
    table = torch.zeros((), device=indices.device).expand(shape)
    if select:
        aten.index_select(table, len(every) - 1, indices)
    else:
        aten.index(table, every)
    raise IndexError("index out of range in self")


def _places_on_device(
    indices: Tensor,
    rows: int,
    shape: Sequence[int],
    every: Sequence[Tensor | None],
    select: bool,
) -> Tensor:
    table = torch.zeros((), device=indices.device).expand(rows)
    if select:
        aten.index_select(table, 0, indices)
    else:
        aten.index(table, [indices])
    return indices


def _bag_indices(
    table: Tensor, indices: Tensor, offsets: Tensor, mode: int, last: bool, padding: int
) -> Tensor:
    private = indices.clone()
    least, most = torch.aminmax(private)
    if int(least) < 0 or int(most) >= table.shape[0]:
        _look_up_bags(table, indices, offsets, mode, last, padding)
        # Torch looks at no index behind the last bag.
        return private.clamp_(0, table.shape[0] - 1)
    return private


def _bag_bounds(
    table: Tensor,
    indices: Tensor,
    offsets: Tensor,
    mode: int,
    last: bool,
    padding: int,
    sizes: bool,
) -> Tensor:
    private, end = offsets.clone(), offsets.new_tensor([len(indices)])
    bounds = private if last else torch.cat([private, end])
    follow = bool((bounds.diff() >= 0).all())
    if bounds[0] == 0 and follow and bounds[-1] == end:
        return bounds
    _look_up_bags(table, indices, offsets, mode, last, padding)
    # What torch takes, it takes in ways of its own: one of its kernels leaves out what
    # is behind the last bound, all others do not, and count how often a row begins a
    # bag. Sizes are what lies between two bounds in any case.
    begins = bounds[:-1]
    if not sizes and not (table.dtype in _BY_BOUNDS and padding < 0 and mode != _MAX):
        begins = begins.sort().values
    elif not sizes:
        end = bounds[-1:]
    taken = torch.cat([begins, end])
    ordered = bool((taken.diff() >= 0).all())
    if not sizes and not (ordered and taken[0] == 0 and end <= len(indices)):
        raise IndexError("offsets of bags out of range")
    return taken


def _look_up_bags(
    table: Tensor, indices: Tensor, offsets: Tensor, mode: int, last: bool, padding: int
) -> None:
    """Raise what torch raises for such operands, if it does."""
    skipped = None if padding < 0 else padding
    torch.embedding_bag(
        table, indices, offsets, False, mode, False, None, last, skipped
    )


def checked_on_device(look_up: Callable[[Tensor, Tensor], Tensor]) -> Check:
    """Return a check that the host does not wait for.

    What it returns are the indices themselves: what reads them is queued behind it.

    Args:
        look_up: Finds rows of a table, and stops the device at an index out of range.
    """

    def check(table: Tensor, indices: Tensor, *options: Any) -> Tensor:
        look_up(table[(slice(None), *[slice(0, 1)] * (table.dim() - 1))], indices)
        return indices

    return check


def _register(
    check: Check, look_up: Callable[[Tensor, Tensor], Tensor] | None, options: str = ""
) -> OpOverload:
    """Make a check an operator: graphs and artifacts hold operators.

    Args:
        check: What it does on the CPU.
        look_up: Finds the rows on a GPU; None for checks that are made on CPUs alone.
        options: Of its schema, behind the operands.
    """
    name = f"checked{check.__name__}"
    schema = f"{name}(Tensor table, Tensor indices{options}) -> Tensor"
    LIBRARY.define(schema)  # type: ignore[no-untyped-call]
    LIBRARY.impl(name, check, "CPU")  # type: ignore[no-untyped-call]
    if look_up is not None:
        on_device = checked_on_device(look_up)
        LIBRARY.impl(name, on_device, "CUDA")  # type: ignore[no-untyped-call]
    operator: OpOverload = getattr(torch.ops.magweld, name).default
    return operator


LIBRARY = Library("magweld", "DEF")  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class _LookUp:
    """One operator that looks up rows.

    Attributes:
        check: Operator that returns its indices, or raises what it would raise.
        indices_of: Where a node has them; None where it does something else.
    """

    check: OpOverload
    indices_of: Callable[[fx.Node], Any]


def _second(node: fx.Node) -> Any:
    return node.args[1]


def _only_index(node: fx.Node) -> Any:
    indices: Any = node.args[1]
    single = isinstance(indices, (list, tuple)) and len(indices) == 1
    return indices[0] if single else None


def _along_first(node: fx.Node) -> Any:
    return node.args[2] if node.args[1] == 0 else None


_LOOK_UPS: Mapping[object, _LookUp] = {
    aten.embedding.default: _LookUp(_register(_embedding, aten.embedding), _second),
    aten.index.Tensor: _LookUp(_register(_index, _rows), _only_index),
    aten.index_select.default: _LookUp(
        _register(_index_select, _selected_rows), _along_first
    ),
}
CHECKED_EMBEDDING_BAG = _register(
    _embedding_bag, aten.embedding, ", int bag, int mode, int padding"
)
"""Returns indices into bags of one size, or raises what `embedding_bag` would."""


def _register_places() -> OpOverload:
    LIBRARY.define(  # type: ignore[no-untyped-call]
        "checked_places(Tensor indices, int rows, int[] shape, Tensor?[] every, "
        "bool select) -> Tensor"
    )
    LIBRARY.impl("checked_places", _places, "CPU")  # type: ignore[no-untyped-call]
    on_device = _places_on_device
    LIBRARY.impl("checked_places", on_device, "CUDA")  # type: ignore[no-untyped-call]
    operator: OpOverload = torch.ops.magweld.checked_places.default
    return operator


CHECKED_PLACES = _register_places()
"""Returns indices into one dimension of a tensor, or raises what its look-up would.

Takes the indices, the extent of the dimension, that of all dimensions, the tensors that
index these, None for dimensions that none does, and whether it is `index_select` that
looks up, whose indices are not negative.
"""
_BAG = ", Tensor offsets, int mode, bool last, int padding"
CHECKED_INDICES = _register(_bag_indices, None, _BAG)
"""Returns indices into bags that offsets tell, or raises what torch would."""
CHECKED_BOUNDS = _register(_bag_bounds, None, f"{_BAG}, bool sizes")
"""Returns where bags begin, and where the last one ends, or raises what torch would.

With `sizes` it is the bounds that a mean takes the sizes of bags from.
"""

_LEAST: Mapping[OpOverload, int | None] = {
    CHECKED_EMBEDDING_BAG: 0,
    CHECKED_INDICES: 0,
    CHECKED_PLACES: None,  # 0 for some: `index_check_of`
    _LOOK_UPS[aten.embedding.default].check: 0,
    _LOOK_UPS[aten.index.Tensor].check: None,
    _LOOK_UPS[aten.index_select.default].check: 0,
}
LEAST_INDEX: Mapping[str, int | None] = {str(op): least for op, least in _LEAST.items()}
"""Name of a check to the least index in range, None for minus the rows."""


def index_check_of(
    operator: str, arguments: Sequence[Any], place_of: Callable[[Any], int | None]
) -> IndexCheck | None:
    """Return what an operator compares, if all that it does is a check of indices.

    A truth that is required is an index for which one row is in range.

    Args:
        operator: Its name.
        arguments: Its arguments.
        place_of: Tells which of the tensors that it is given an argument is, None for
            others.
    """
    if operator == str(REQUIRE_TRUTH):
        truth, condition = int(arguments[1]), place_of(arguments[0])
        if condition is None:
            return None
        return IndexCheck(None, condition, truth, truth + 1)
    if operator not in LEAST_INDEX:
        return None
    least = LEAST_INDEX[operator]
    table, indices = map(place_of, arguments[:2])
    if operator == str(CHECKED_PLACES):
        indices, rows, select = table, arguments[1], arguments[4]
        least = 0 if select else least
        return None if indices is None else IndexCheck(None, indices, least, rows)
    if table is None or indices is None:
        return None
    return IndexCheck(table, indices, least)


def check_look_ups(graph: fx.Graph) -> None:
    """Split look-ups of rows into a check of the indices and the look-up itself.

    The check runs as an external; what it returns is the only way to the indices.
    """
    for node in list(graph.nodes):
        look_up = _LOOK_UPS.get(node.target)
        indices = look_up.indices_of(node) if look_up is not None else None
        if look_up is None or not _finds_rows(node.args[0], indices):
            continue
        if is_checked(node):
            continue
        checked = _checked_node(node, look_up.check, indices)
        node.target = aten.index.Tensor
        node.args = (node.args[0], [checked])
        node.kwargs = {}


def _checked_node(node: fx.Node, check: OpOverload, indices: Any) -> fx.Node:
    """Insert the check of a look-up; return its indices, of 64 bits."""
    values = values_of(indices)
    with node.graph.inserting_before(node):
        checked = node.graph.call_function(check, (node.args[0], indices))
        checked.meta = {k: v for k, v in node.meta.items() if k in _PLACES}
        checked.meta["val"] = values
        if values.dtype == torch.int64:
            return checked
        wide = node.graph.call_function(
            aten._to_copy.default, (checked,), {"dtype": torch.int64}
        )
        wide.meta["val"] = values.to(torch.int64)
        return wide


def is_checked(node: fx.Node) -> bool:
    """Tell whether a node looks up rows by indices that were checked before."""
    if IN_RANGE in node.meta:
        return True
    index = _only_index(node)
    while isinstance(index, fx.Node) and index.target in _SAME_INDICES:
        index = index.args[0]
    return isinstance(index, fx.Node) and index.target in _LEAST


def _finds_rows(table: Any, indices: Any) -> bool:
    if not isinstance(table, fx.Node) or not isinstance(indices, fx.Node):
        return False
    rows, places = values_of(table), values_of(indices)
    return bool(
        is_arranged(rows)
        and rows.dtype is not torch.bool
        and places.dtype in INDICES
        and rows.dim() > 1
        and places.dim() > 0
        and rows.numel() > 0
        and places.numel() > 0
    )
