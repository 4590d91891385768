"""Owns select-libraries: which operators of a GPU's graph a library computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import device_of, is_tile_graph, operators_of
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.analysis.library_calls import is_library
from magweld.passes.infrastructure.base import FunctionPass
from magweld.passes.tile.connect_operators import TRIALS, WIDTH, Connector
from magweld.passes.tile.library_candidates import (
    Called,
    called_operators,
    decided_calls,
    fold_rounding,
)
from magweld.passes.tile.library_groups import Candidate, LibraryGroups
from magweld.passes.tile.merger import Fusion, Merger
from magweld.passes.tile.select_implementation import LibraryUse, states_libraries
from magweld.passes.tiling.library_price import library_seconds
from magweld.passes.tiling.policy import Scheduler
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets.device import Device


@dataclass(frozen=True)
class SelectLibraries(FunctionPass):
    """Let a library compute products and convolutions where that is predicted faster.

    Groups are formed as connect-operators would with generated code alone. For each
    that has a product or convolution for which the device states the rate of a library,
    its predicted time is compared with that of the call and of kernels for the rest of
    the group: what was an epilogue is a pass over memory then. The call takes the
    arithmetic at the stated rate, moving each tensor once, and a launch.

    A product of halves sums up in f32 and is a call with what rounds its sums, as torch
    does within one operator: a rounding, or a row of halves that is added before. The
    edge between them stays inside, so that they are one subgraph:

    ```mlir
    %p = operator {linalg.matmul ins(%a, %b : bf16, bf16) outs(%zero : f32)}
    %s = operator {addf %p, %widened_bias}
    %r = operator {truncf %s}
    ```
    becomes
    ```mlir
    %p = operator {linalg.matmul ...} {implementation = "library"}
    %c = connect %p {level = "register"}
    %r = operator {truncf (addf %c, (extf %bias))} {implementation = "library"}
    ```

    What a plan decided is kept; where that is a call of several operators, it becomes
    one as above. Every other operator is generated. Devices that state
    no rates, and those whose tiles no threads share, are left alone.

    Options:
        library: "auto" as above, "never", or "always" where a call exists.
        fusion: As for connect-operators, and the next three.
        width: How many groupings are carried on.
        trials: How often a group of a graph may be tried without a part of it.
        batch: Whether equal groups that are independent count as one launch.
    """

    name: ClassVar[str] = "select-libraries"
    library: LibraryUse = "auto"
    fusion: Fusion = "all"
    width: int = WIDTH
    trials: int = TRIALS
    batch: bool = False

    def run_on_function(self, function: Any) -> None:
        """Annotate the operators of the graphs of `function`."""
        if not is_tile_graph(function):
            return
        device = device_of(function)
        if not states_libraries(device):
            return
        body = read_body(function)
        decided = decided_calls(body, device)
        for called in (*decided, *self.calls(body, device)):
            # Roundings are read by others: what is folded is erased.
            for member in (called.members[0], called.members[-1]):
                _implement(body.operators[member], "library")
            if len(called.members) > 1:
                fold_rounding(body, called, device.levels[-1].name)
        for operator in operators_of(function):
            if "implementation" not in operator.attributes:
                _implement(operator, "generated")

    def calls(self, body: GraphBody, device: Device) -> list[Called]:
        """Return the calls for operators of a graph that nothing was decided for."""
        if self.library == "never":
            return []
        every = {one.members[0]: one for one in called_operators(body, device)}
        if self.library == "always":
            return list(every.values())
        library = [n for n, op in enumerate(body.operators) if is_library(op)]
        merger = Merger(body, Scheduler(device), self.fusion, library, self.batch)
        candidates = {}
        for product, called in every.items():
            seconds = _seconds(body, called, device)
            if seconds is not None and seconds < _alone(merger, product):
                candidates[product] = Candidate(called.members, seconds)
        if not candidates:
            return []
        connector = Connector(merger, self.width, self.trials)
        connector.connect()
        groups = map(tuple, connector.groups.values())
        found = LibraryGroups(merger, candidates).chosen(groups)
        return [every[one.members[0]] for one in found]


def _seconds(body: GraphBody, called: Called, device: Device) -> float | None:
    model = body.models[called.members[0]]
    root = body.operators[called.members[-1]].results[0]
    kind = str(ir.RankedTensorType(root.type).element_type)
    return library_seconds(model, called.call.operation, kind, device)


def _alone(merger: Merger, product: int) -> float:
    """Return the time of a product in a kernel of its own: no group makes it less."""
    plan = merger.plan((product,))
    return plan.cost.seconds if isinstance(plan, Plan) else merger.seconds((product,))


def _implement(operator: Any, name: str) -> None:
    operator.attributes["implementation"] = ir.StringAttr.get(name)
