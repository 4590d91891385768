"""Owns select-implementation: generated code or a library call for each operator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from magweld.bindings import ir, linalg
from magweld.codegen.unfolded_windows import LIBRARY_CHANNELS
from magweld.dialects.tile_graph import (
    device_of,
    is_tile_graph,
    operators_of,
    root_operation,
)
from magweld.passes.analysis.body_forms import factor_type
from magweld.passes.analysis.library_calls import call_on
from magweld.passes.analysis.library_form import LibraryCall
from magweld.passes.analysis.operator_model import operator_model
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.library_price import library_seconds
from magweld.passes.tiling.matrix_units import HALVES
from magweld.passes.tiling.policy import schedule, tile_levels
from magweld.passes.tiling.propagation import Refusal, propagate
from magweld.passes.tiling.regions import WINDOW_LOOPS, OperatorKind, OperatorModel
from magweld.passes.tiling.vectors import vector_waste
from magweld.targets.device import Device, LevelKind

# Products of wider elements are as fast as a library's, which has instructions for
# narrower ones that generated code does not use.
GENERATED_BYTES = 4

# Predicted time over that of the arithmetic from which a library is faster.
SLOW = 1.5

LibraryUse = Literal["auto", "never", "always"]


@dataclass(frozen=True)
class SelectImplementation(FunctionPass):
    """Choose between generated code and a library call for each operator.

    A library computes what is bound by arithmetic and what generated code is slower
    at: convolutions over many channels with windows of more than one point, and
    products of matrices whose elements have less than four bytes, or that no tile
    suits. If a core works on a tile alone, that is what the best plan says: whether it
    comes near the peak of the device. Threads that share a tile are slower than a
    library where the matrices exceed all caches. The rest stays generated, so that it
    can be fused. Written as `implementation` to the operator; what is there already is
    kept. Products and convolutions of devices that state what a library takes are left
    to select-libraries, which prices whole groups.

    Options:
        library: "auto" as above, "never", or "always" where a call exists.
    """

    name: ClassVar[str] = "select-implementation"
    library: LibraryUse = "auto"

    def run_on_function(self, function: Any) -> None:
        """Annotate the operators of the graphs of `function`."""
        if not is_tile_graph(function):
            return
        device = device_of(function)
        for operator in operators_of(function):
            known = "implementation" in operator.attributes
            if not known and not self._is_priced(operator, device):
                use = self.uses_library(operator, device)
                name = "library" if use else "generated"
                operator.attributes["implementation"] = ir.StringAttr.get(name)

    def _is_priced(self, operator: Any, device: Device) -> bool:
        """Whether select-libraries decides: the device states what libraries take.

        It also knows that products of halves are called with what rounds their sums.
        """
        if not states_libraries(device) or self.library == "never":
            return False
        root = root_operation(operator)
        if not (linalg.isa_contraction_op(root) or linalg.isa_convolution_op(root)):
            return False
        return self.library == "auto" or factor_type(root) in HALVES

    def uses_library(self, operator: Any, device: Device) -> bool:
        """Whether this is the choice for an operator, whatever is written there."""
        if self.library == "never":
            return False
        call = call_on(device, [operator])
        if not isinstance(call, LibraryCall):
            return False
        if self.library == "always":
            return True
        model = operator_model(operator)
        if states_libraries(device):
            return _is_faster(call, operator, model, device)
        return is_for_library(model, device)


def states_libraries(device: Device) -> bool:
    """Whether a device has threads that share tiles, and rates of libraries."""
    return device.threads > 1 and bool(device.libraries)


def _is_faster(
    call: LibraryCall, operator: Any, model: OperatorModel, device: Device
) -> bool:
    """Whether a call takes less than the best kernel of an operator alone."""
    kind = str(ir.RankedTensorType(operator.results[0].type).element_type)
    seconds = library_seconds(model, call.operation, kind, device)
    if seconds is None:
        return False
    plan = schedule(_alone(model), device)
    return isinstance(plan, Refusal) or seconds < plan.cost.seconds


def _alone(model: OperatorModel) -> Group:
    sources = tuple(Source(None, number) for number in range(len(model.reads)))
    return Group((model,), (sources,))


def is_for_library(model: OperatorModel, device: Device) -> bool:
    """Whether a library computes an operator faster than generated code.

    A convolution is if it has a window and sums over channels, many from many. One of
    single points is a product of matrices whose bias, norm and activation are worth
    more in the same kernel; one of each channel by itself reads more than it computes.
    """
    if model.winograd:
        return False
    if model.kind is OperatorKind.CONVOLUTION:
        *channels, _, _ = model.reduction
        window = (model.extents[loop] > 1 for loop in model.reduction[-WINDOW_LOOPS:])
        narrow = device.threads == 1 and _fewest_channels(model) < LIBRARY_CHANNELS
        return bool(channels) and any(window) and not narrow
    moved = sum(a.total_bytes for a in (*model.reads, *model.writes))
    # A contraction's body is one multiplication and one addition.
    arithmetic = math.prod(model.extents) * 2 / (device.peak_gflops * 1e9)
    if arithmetic <= moved / (device.levels[0].bandwidth * 1e9):
        return False
    if model.writes[0].element_bytes < GENERATED_BYTES:
        return True
    if device.threads > 1:
        caches = [lvl.capacity for lvl in device.levels if lvl.kind is LevelKind.CACHE]
        return moved // _batches(model) > max(caches, default=0)
    # What fits the memory of a core whole needs no tiles.
    own = max((level.capacity for level in tile_levels(device)), default=0)
    return moved > own and _is_slow(model, device, arithmetic)


def _fewest_channels(model: OperatorModel) -> int:
    """Return how many channels a convolution reads or makes, whichever are fewer."""
    reduction = set(model.reduction)
    window = set(model.reduction[-WINDOW_LOOPS:])
    weight = {
        loop
        for index in model.reads[1].index
        if index is not None
        for loop, _ in index.terms
    } - window
    read = math.prod(model.extents[loop] for loop in weight & reduction)
    return min(read, math.prod(model.extents[loop] for loop in weight - reduction))


def _is_slow(model: OperatorModel, device: Device, seconds: float) -> bool:
    """Whether no plan of a product comes near the time that its arithmetic takes.

    Columns that do not fill vectors cost a library as much.
    """
    group = _alone(model)
    plan, whole = schedule(group, device), propagate(group, model.whole_tile)
    if isinstance(plan, Refusal) or isinstance(whole, Refusal):
        return True
    least = seconds * vector_waste(whole.parts[0], device)
    return max(share.seconds for share in plan.cost.shares) > SLOW * least


def _batches(model: OperatorModel) -> int:
    """Return how many products there are: loops that every operand has are of them."""
    accesses = (*model.reads, *model.writes)
    loops = [
        {loop for index in access.index if index is not None for loop, _ in index.terms}
        for access in accesses
    ]
    shared = set.intersection(*loops)
    return max(1, math.prod(model.extents[loop] for loop in shared))
