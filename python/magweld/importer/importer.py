"""Owns the import of a recorded graph: its torch-dialect text and all around a call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from magweld.artifact import NativeCheck, StandIns
from magweld.codegen.shared_code import SharedCode
from magweld.importer import refusals
from magweld.importer.bags import expand_bags
from magweld.importer.capture import (
    lift_constants,
    lift_large_literals,
    to_aten,
)
from magweld.importer.decompositions import DECOMPOSITIONS
from magweld.importer.dtypes import IMPORTED, carried, is_carried
from magweld.importer.epilogue import Epilogue, set_versions
from magweld.importer.external_code import ExternalCode
from magweld.importer.externals import External, find_externals, index_checks_of
from magweld.importer.fixed import evaluate_fixed
from magweld.importer.gathers import check_look_ups
from magweld.importer.image_code import has_images
from magweld.importer.inner_extents import (
    RECURRENT_LAYERS,
    inner_regions,
    left_whole,
)
from magweld.importer.inner_look_ups import expand_inner_look_ups
from magweld.importer.joined_rows import JoinedRows
from magweld.importer.nodes import REASON, is_random, tensors_of
from magweld.importer.observation import as_recorded, observe
from magweld.importer.placing import CPU, made_on, placed_graph
from magweld.importer.planning import plan_epilogue
from magweld.importer.resizing import RESIZING
from magweld.importer.row_gradients import expand_row_gradients
from magweld.importer.simplify import (
    remove_dead,
    simplify,
    take_writes,
)
from magweld.importer.sized_epilogue import epilogue_at
from magweld.importer.spread_rows import spread_rows
from magweld.importer.structure import RANGES
from magweld.importer.substitutions import SUBSTITUTIONS
from magweld.importer.torch_dialect import to_torch_dialect
from magweld.importer.uniform import evaluate_uniform
from magweld.short_repr import short_repr

_CONSTANT = StandIns()
PLAIN_CLASSES = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def _counted(
    sequence: Callable[[list[torch.Tensor]], Any],
    versions: Sequence[tuple[int, int]],
    results: list[torch.Tensor],
) -> Any:
    set_versions(results, versions)
    return sequence(results)


@dataclass(frozen=True)
class ImportedGraph:
    """A graph ready to be compiled, and what a call does around the compiled function.

    A call of the compiled function `program` is

        graph.finish(inputs, program(graph.prepare(inputs)))

    Attributes:
        text: Module in the torch dialect; `@main` takes what `prepare` returns. Equal
            graphs have equal text; no parameter's data is in it.
        aten: The functional ATen graph of `@main`; location names are its nodes.
        arguments: For each argument of `@main` its position among the inputs followed
            by the constants.
        constants: Tensors that the recorded graph holds.
        externals: Operators that run through torch, by node name, in order.
        epilogue: What happens after the compiled function.
        converted: Arguments that the compiled function cannot take as they are.
        stand_ins: Extents that stand for sizes of the call.
        alone: Whether no operator may run through torch.
    """

    __repr__ = short_repr

    text: str
    aten: fx.GraphModule
    arguments: tuple[int, ...]
    constants: tuple[torch.Tensor, ...]
    externals: Mapping[str, External]
    epilogue: Epilogue
    converted: tuple[int, ...]
    stand_ins: StandIns = _CONSTANT
    alone: bool = False

    def prepare(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the arguments of the compiled function: used inputs, contiguous."""
        every = [*inputs, *self.constants]
        arguments = [every[position] for position in self.arguments]
        for number in self.converted:
            arguments[number] = carried(arguments[number].contiguous())
        return arguments

    @property
    def direct(self) -> Callable[[list[torch.Tensor]], Any] | None:
        """What makes the results a list or tuple, if that is what a call returns.

        The arguments are then the first inputs in order, as they are. The results must
        be no inputs, and not share memory.
        """
        in_order = self.arguments == tuple(range(len(self.arguments)))
        as_they_are = in_order and not self.constants and not self.converted
        sequence = self.epilogue.sequence_of_results if as_they_are else None
        if sequence is None or not self.epilogue.versions:
            return sequence
        return functools.partial(_counted, sequence, self.epilogue.versions)

    def finish(
        self,
        inputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        *,
        fresh: bool = False,
    ) -> Any:
        """Write to the inputs and return what the recorded graph would return.

        Args:
            inputs: The call's own inputs.
            results: Of the compiled function.
            fresh: Whether none of these is known to be an input or another result.
        """
        every = [*inputs, *self.constants]
        return self.epilogue.finish(every, results, fresh=fresh)

    def run_external(
        self, node: str, tensors: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Run an external operator on real tensors.

        Raises:
            KeyError: There is no such external operator.
            Exception: What torch raises for these operands.
        """
        return self.externals[node](tensors)

    @property
    def natives(self) -> dict[str, JoinedRows]:
        """Externals that native code runs on addresses, by node name."""
        found = {name: one.native for name, one in self.externals.items()}
        return {name: one for name, one in found.items() if one is not None}

    @property
    def fresh(self) -> frozenset[str]:
        """The externals whose results are memory of their own, by node name."""
        return frozenset(name for name, one in self.externals.items() if one.is_fresh)

    @property
    def index_checks(self) -> dict[str, NativeCheck]:
        """The externals that check or sort indices, by node name."""
        return index_checks_of(self.externals)

    @property
    def draws(self) -> bool:
        """Whether a call draws random numbers."""
        return any(map(is_random, self.aten.graph.nodes))

    @property
    def reasons(self) -> list[str]:
        """Why externals run through torch that others of their kind do not."""
        nodes = [one.node for one in self.externals.values()]
        return [
            f"{refusals.describe(node)}: {node.meta[REASON]}"
            for node in nodes
            if REASON in node.meta
        ]

    @property
    def has_inner_extents(self) -> bool:
        """Whether torch runs operators for sizes of the call inside of their tensors.

        What else it runs it runs in a graph for one size as well, most convolutions of
        images among it, or is no slower there than generated code: recurrent layers.
        """
        regions = inner_regions(self.aten.graph, self.stand_ins)
        runs = [(*beside, node) for node, beside in regions.items()]
        return not all(has_images(run) or _has_layers(run) for run in runs)

    @property
    def has_images(self) -> bool:
        """Whether torch runs convolutions of images together with what is around."""
        runs = [(*one.beside, one.node) for one in self.externals.values()]
        return any(map(has_images, runs))

    def with_externals(self, nodes: Sequence[str]) -> ImportedGraph:
        """Return the same graph with more nodes running through torch.

        Raises:
            KeyError: A name is none of a node.
            UnsupportedError: No operator of this graph may run through torch.
        """
        if self.alone:
            names = ", ".join(sorted(set(nodes)))
            raise refusals.RUNS_THROUGH_TORCH.at("the graph", names)
        known = {node.name for node in self.aten.graph.nodes}
        unknown = sorted(set(nodes) - known)
        if unknown:
            raise KeyError(f"no nodes of the graph: {', '.join(unknown)}")
        forced = frozenset([*nodes, *self.externals])
        externals = find_externals(self.aten.graph, forced, self.stand_ins)
        text = to_torch_dialect(self.aten.graph, externals, self.stand_ins)
        return replace(self, text=text, externals=externals)

    def at(self, sizes: Sequence[int]) -> ImportedGraph:
        """Return the graph with what is around the program for some sizes."""
        made = {
            name: replace(self.externals[name], code=code.at(sizes))
            for name, code in self._codes.items()
            if name not in self._for_all_sizes
        }
        every = {**self.externals, **self._for_all_sizes, **made}
        at = functools.partial(self.stand_ins.at, sizes=sizes)
        return replace(self, externals=every, epilogue=epilogue_at(self.epilogue, at))

    @functools.cached_property
    def _for_all_sizes(self) -> dict[str, External]:
        """Externals with code that does not depend on sizes, by node name."""
        numbers = self.stand_ins.numbers
        return {
            name: replace(self.externals[name], code=code.at(numbers))
            for name, code in self._codes.items()
            if not code.depends
        }

    @property
    def shared_code(self) -> list[SharedCode[Any]]:
        """The native code that externals run, in memory or not."""
        runs = self._codes if self.stand_ins else self.externals
        return [*dict.fromkeys(c for one in runs.values() for c in one.shared_code)]

    @functools.cached_property
    def _codes(self) -> dict[str, ExternalCode]:
        """What runs externals for the sizes of a call, by node name."""
        found = {n: e.sized(self.stand_ins) for n, e in self.externals.items()}
        return {name: code for name, code in found.items() if code is not None}

    def where(self, node: str) -> str:
        """Return a node's name with the user's file and line where it is known."""
        found = [n for n in self.aten.graph.nodes if n.name == node]
        return refusals.describe(found[0]) if found else f"node '{node}'"

    def sources(self) -> dict[str, list[str]]:
        """Return the places in the user's files that nodes come from, by name.

        Each is "file:line"; callers come before what they call.
        """
        places = {n.name: refusals.places(n) for n in self.aten.graph.nodes}
        return {name: found for name, found in places.items() if found}

    def modules(self) -> dict[str, str]:
        """Return the innermost module in which a node was recorded, by its name.

        Nodes of the outermost module have none.
        """
        stacks = {
            node.name: node.meta.get("nn_module_stack") or {}
            for node in self.aten.graph.nodes
        }
        return {
            name: str(innermost)
            for name, stack in stacks.items()
            if (innermost := next(reversed(stack.values()), ("",))[0])
        }


def _has_layers(run: Iterable[fx.Node]) -> bool:
    """Tell whether some operators are around recurrent layers of torch's library."""
    return any(node.target in RECURRENT_LAYERS for node in run)


def import_graph(
    graph: fx.GraphModule,
    example_inputs: Sequence[torch.Tensor],
    *,
    look_ups: bool = False,
    tileable: bool = False,
    device: torch.device = CPU,
    stand_ins: StandIns = _CONSTANT,
    fixed: frozenset[int] = frozenset(),
) -> ImportedGraph:
    """Import a graph at torch level, e.g. one that the monitor has recorded.

    Args:
        graph: Calls of torch functions and tensor methods on placeholders; it may
            write to inputs, return views and draw random numbers.
        example_inputs: One tensor per placeholder. Shapes, strides, dtypes and shared
            memory are taken from them; they are neither read nor written.
        look_ups: Whether kernels may look up rows of tables; the checks of the indices
            are externals that have no name in torch.
        tileable: Whether operators that enlarge images are taken apart, so that parts
            of their results follow from parts of their operands; on GPUs they are.
        device: Where the graph will run. Example inputs are all there, or all on the
            CPU; what the graph makes on the CPU is then made there as well.
        stand_ins: Extents of the example inputs that stand for sizes of the call; see
            `magweld.importer.sizes` for which graphs that is right.
        fixed: Positions of example inputs that are the same in all calls, and are read:
            operators without generated code that depend on them alone are evaluated.

    Raises:
        UnsupportedError: The graph or an input is of a kind in `refusals`.
    """
    source = example_inputs[0].device if example_inputs else device
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    pairs = zip(placeholders, example_inputs, strict=True)
    for position, (node, tensor) in enumerate(pairs):
        _require_plain(tensor, f"input {position}", source, node)
    if source not in (CPU, device):
        raise refusals.DEVICE.at("the graph's inputs", source)
    lifted, constants = lift_constants(placed_graph(graph, source, device))
    inputs = [*example_inputs, *constants]
    more = {} if stand_ins else dict(RANGES)
    if tileable or device != CPU:
        more |= RESIZING
    with made_on(source, device):
        observation = as_recorded(
            observe(lifted, inputs, device), graph.graph, example_inputs
        )
        aten = to_aten(
            lifted,
            inputs,
            left_whole({**DECOMPOSITIONS, **more}, stand_ins),
            device,
            left_whole(SUBSTITUTIONS, stand_ins),
        )
    constants += lift_large_literals(aten)
    written = take_writes(aten.graph)
    simplify(aten.graph)
    evaluate_uniform(aten.graph)
    epilogue = plan_epilogue(aten.graph, written, observation, inputs)
    if fixed:
        every = [*example_inputs, *constants]
        constants += evaluate_fixed(aten, every, len(example_inputs), fixed)
    remove_dead(aten.graph)
    arguments = _drop_unused_inputs(aten.graph)
    if look_ups:
        expand_bags(aten.graph, stand_ins)
        expand_inner_look_ups(aten.graph, stand_ins)
        check_look_ups(aten.graph)
        expand_row_gradients(aten.graph, stand_ins)
    spread_rows(aten.graph, stand_ins)
    _require_real(aten.graph, device)
    externals = find_externals(aten.graph, frozenset(), stand_ins)
    text = to_torch_dialect(aten.graph, externals, stand_ins)
    every = [*example_inputs, *constants]
    return ImportedGraph(
        text=text,
        aten=aten,
        arguments=arguments,
        constants=tuple(constants),
        externals=externals,
        epilogue=epilogue,
        stand_ins=stand_ins,
        converted=tuple(
            number
            for number, position in enumerate(arguments)
            if not every[position].is_contiguous() or is_carried(every[position].dtype)
        ),
    )


def import_values(
    graph: fx.GraphModule,
    example_inputs: Sequence[torch.Tensor],
    *,
    alone: bool = False,
) -> str:
    """Return the torch-dialect text of a graph as a function of values alone.

    Args:
        graph: A graph as `import_graph` takes it, without tensors of its own.
        example_inputs: One tensor per placeholder.
        alone: Whether nothing may run through torch.

    Raises:
        UnsupportedError: See `import_graph`; or the graph writes to its inputs, or an
            operator runs through torch.
    """
    lifted, constants = lift_constants(graph)
    if constants:
        raise refusals.NODE_KIND.at("the graph", "a tensor of its own")
    aten = to_aten(lifted, example_inputs)
    if take_writes(aten.graph):
        raise refusals.HIDDEN_MUTATION.at("the graph", "an operator")
    simplify(aten.graph)
    evaluate_uniform(aten.graph)
    remove_dead(aten.graph)
    _require_real(aten.graph, CPU)
    externals = find_externals(aten.graph, frozenset())
    for external in externals.values() if alone else ():
        raise refusals.RUNS_THROUGH_TORCH.at_node(external.node, external.node.target)
    return to_torch_dialect(aten.graph, externals)


def _drop_unused_inputs(graph: fx.Graph) -> tuple[int, ...]:
    used = []
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for position, node in enumerate(placeholders):
        if node.users:
            used.append(position)
        else:
            graph.erase_node(node)
    return tuple(used)


def _require_plain(
    tensor: torch.Tensor, where: str, device: torch.device, node: fx.Node
) -> None:
    users = list(node.users)
    if type(tensor) not in PLAIN_CLASSES:
        raise refusals.SUBCLASS.at(where, type(tensor).__name__, users)
    if tensor.device != device:
        raise refusals.DEVICE.at(where, tensor.device, users)
    if tensor.layout is not torch.strided:
        raise refusals.LAYOUT.at(where, tensor.layout, users)
    if tensor.dtype not in IMPORTED:
        raise refusals.DTYPE.at(where, tensor.dtype, users)
    if tensor.is_conj() or tensor.is_neg():
        raise refusals.LAZY_BITS.at(where, nodes=users)


def _require_real(graph: fx.Graph, device: torch.device) -> None:
    faults = [
        (node, *fault)
        for node in graph.nodes
        for value in tensors_of(node)
        if (fault := _fault(node, value, device)) is not None
    ]
    if faults:
        node, refusal, detail = faults[0]
        raise refusal.at(refusals.describe(node), detail, _around(faults))


def _around(faults: Sequence[tuple[fx.Node, Any, Any]]) -> list[fx.Node]:
    """Return the operators that make or take values of faulty nodes."""
    nodes = [near for node, _, _ in faults for near in (node, *node.users)]
    return [node for node in nodes if node.op == "call_function"]


def _fault(
    node: fx.Node, value: torch.Tensor, device: torch.device
) -> tuple[refusals.Refusal, object] | None:
    elsewhere = value.device.type != device.type
    if elsewhere and not _is_operand_alone(node, value):
        return refusals.DEVICE, value.device
    if value.layout is not torch.strided:
        return refusals.LAYOUT, value.layout
    if value.dtype not in IMPORTED:
        return refusals.DTYPE, value.dtype
    return None


def _is_operand_alone(node: fx.Node, value: torch.Tensor) -> bool:
    """Whether a value may be on the CPU although all else is not.

    Torch takes numbers without dimensions from there. Where it is not returned, nobody
    can tell that the program has it elsewhere.
    """
    returned = any(user.op == "output" for user in node.users)
    return value.device == CPU and value.dim() == 0 and not returned
