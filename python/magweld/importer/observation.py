"""Owns what eager torch promises about a graph: outputs, aliases, written inputs.

The graph is run once on tensors without data. That tells for each output its dtype,
shape and strides, whether it is an input, and which tensors share memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.autograd.graph import increment_version
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.diagnostics import UnsupportedError
from magweld.importer import refusals
from magweld.importer.nodes import results_of
from magweld.importer.placing import CPU, tensors_without_data
from magweld.importer.repeated_calls import RepeatedCalls, call_of
from magweld.layouts import (
    Layout,
    is_captured,
    is_noted,
    layout_of,
    noted_creation,
    noted_layout,
)
from magweld.logs import expected_errors
from magweld.paced import checkpoint
from magweld.storages import count_writes_to_lists, is_size_of, storage_of

aten = torch.ops.aten

_BATCH_NORMS = frozenset(
    {
        aten.native_batch_norm.default,
        aten._native_batch_norm_legit.default,
        aten._native_batch_norm_legit.no_stats,
        aten._native_batch_norm_legit_no_training.default,
    }
)


@dataclass(frozen=True)
class TensorFacts:
    """What can be known of a tensor without its data.

    Attributes:
        identity: Equal for two outputs or inputs that are one tensor object.
        storage: Equal for tensors that share memory.
        storage_bytes: Size of that memory.
        root: Equal for tensors that are views of one, as autograd knows it.
        creation: How autograd says that an output came about, see `creation_of`.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    identity: int
    storage: int
    storage_bytes: int
    root: int
    creation: str = ""

    @property
    def is_all_memory(self) -> bool:
        """Whether the memory has the elements of the tensor and no others."""
        return not self.offset and is_size_of(
            self.shape, self.dtype, self.storage_bytes
        )


@dataclass(frozen=True)
class Observation:
    """One run of a graph without data.

    Attributes:
        inputs: Facts of each input before the run.
        outputs: Leaves of the output in order; what is no tensor stands for itself.
        structure: How the leaves make up the output.
        counts: How many writes each input counts, 1 for those of inference.
        uncounted: Outputs on the memory of an input whose version does not count what
            is written to them, as with `x.data`.
        versions: How many writes each output counts, 0 for what is no tensor.
    """

    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts | object, ...]
    structure: Any
    counts: tuple[int, ...]
    uncounted: frozenset[int]
    versions: tuple[int, ...]

    @property
    def silently(self) -> frozenset[int]:
        """Inputs that count no writes, whether or not they were written."""
        return frozenset(n for n, count in enumerate(self.counts) if not count)


class GraphRunner(fx.Interpreter):
    """Runs a graph node by node and names the node that cannot be run."""

    def run_node(self, n: fx.Node) -> Any:
        """Run one node.

        Raises:
            UnsupportedError: The node cannot run on tensors without data.
        """
        checkpoint()
        try:
            return super().run_node(n)
        except UnsupportedError:
            raise
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            detail = str(error.func)
            raise refusals.DATA_DEPENDENT.at_node(n, detail) from error
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            raise refusals.GRAPH_RUN.at_node(n, detail) from error


class _OverlapWatcher(GraphRunner):
    """Refuses writes to tensors several elements of which are at one place.

    What such a write does depends on the order of elements, and torch takes for
    granted that there is none where it turns writes into values.
    """

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        # By the tensor's address; it is kept so that no other gets that address.
        self._overlapping: dict[int, torch.Tensor] = {}
        self._calls = RepeatedCalls()

    def run_node(self, n: fx.Node) -> Any:
        """Run one node.

        Raises:
            UnsupportedError: It cannot run, or writes to an overlapping tensor.
        """
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        call = call_of(n, args, kwargs)
        known = self._calls.answer(call)
        if known is not None:
            return known
        operands = _tensors((args, kwargs))
        overlapping = [t for t in operands if id(t) in self._overlapping]
        versions = {id(t): _version(t) for t in operands}
        result = super().run_node(n)
        written = [t for t in operands if _version(t) != versions[id(t)]]
        if any(id(t) in self._overlapping for t in written):
            raise refusals.OVERLAPPING_MUTATION.at_node(n)
        storages = {t.untyped_storage()._cdata for t in overlapping}
        results = _tensors(result)
        for tensor in results:
            derived = tensor.untyped_storage()._cdata in storages
            if derived or may_overlap(tensor):
                self._overlapping[id(tensor)] = tensor
        if not written and not any(id(t) in self._overlapping for t in results):
            self._calls.keep(call, operands, result)
        return result


def _version(tensor: torch.Tensor) -> int:
    # Inference tensors have none, and cannot be written to here.
    return 0 if tensor.is_inference() else tensor._version


def may_overlap(tensor: torch.Tensor) -> bool:
    """Tell whether two elements of a tensor may be at one place in memory."""
    if not tensor.numel():
        return False
    reach = 0
    pairs = zip(tensor.stride(), tensor.shape, strict=True)
    for stride, extent in sorted(pair for pair in pairs if pair[1] > 1):
        if stride <= reach:
            return True
        reach += stride * (extent - 1)
    return False


def _tensors(tree: Any) -> list[torch.Tensor]:
    """Return the leaves that are tensors with memory."""
    leaves = pytree.tree_leaves(tree)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return [tensor for tensor in tensors if tensor.layout is torch.strided]


class _EagerStrides(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Gives results the strides of the CPU's operators where those without data differ.

    Normalisation of batches keeps the order of an image whose channels come last, and
    no other.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        checkpoint()
        result = func(*args, **(kwargs or {}))
        count_writes_to_lists(func, args)
        if func not in _BATCH_NORMS:
            return result
        return (_in_known_order(result[0]), *result[1:])


def _in_known_order(tensor: torch.Tensor) -> torch.Tensor:
    orders = {4: torch.channels_last, 5: torch.channels_last_3d}
    order = orders.get(tensor.dim(), torch.contiguous_format)
    return tensor if tensor.is_contiguous(memory_format=order) else tensor.contiguous()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Run graphs without data, which draws nothing, and leave grad mode as it was."""
    with torch.inference_mode(False), torch.no_grad(), expected_errors():
        yield


def observe(
    graph: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    device: torch.device = CPU,
) -> Observation:
    """Run a graph once on tensors without data, none of which shares memory.

    Args:
        graph: A graph at torch level; it may write to its inputs.
        inputs: One real tensor per placeholder; they are not touched.
        device: Where the graph will run.

    Raises:
        UnsupportedError: The graph cannot be run so, or changes more of an input
            than its elements.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = tensors_without_data(mode, inputs, device)
    before = tuple(_facts(fake) for fake in fakes)
    versions = [_version(fake) for fake in fakes]
    with undisturbed(), mode, _EagerStrides():  # type: ignore[no-untyped-call]
        output = _OverlapWatcher(graph).run(*fakes)
    if before != tuple(_facts(fake) for fake in fakes):
        raise refusals.INPUT_METADATA.at("the graph's inputs")
    leaves, structure = pytree.tree_flatten(output)
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and (leaf.is_conj() or leaf.is_neg()):
            raise refusals.LAZY_RESULT.at("the graph's outputs")
    outputs = tuple(
        _facts(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves
    )
    pairs = zip(fakes, versions, strict=True)
    counts = tuple(
        1 if fake.is_inference() else fake._version - version for fake, version in pairs
    )
    results = tuple(
        _version(leaf) if isinstance(leaf, torch.Tensor) else 0 for leaf in leaves
    )
    uncounted = frozenset(n for n, t in enumerate(leaves) if _is_uncounted(t, fakes))
    return Observation(before, outputs, structure, counts, uncounted, results)


def _is_uncounted(output: Any, inputs: Sequence[torch.Tensor]) -> bool:
    if not isinstance(output, torch.Tensor) or output.is_inference():
        return False
    storage = storage_of(output)
    shown = [x for x in inputs if storage_of(x) == storage and not x.is_inference()]
    versions = [tensor._version for tensor in shown]
    increment_version(output)
    return any(x._version == n for x, n in zip(shown, versions, strict=True))


def as_recorded(
    observation: Observation, graph: fx.Graph, inputs: Sequence[torch.Tensor]
) -> Observation:
    """Give outputs the strides that they had when the graph was captured.

    Args:
        observation: A run of the graph without data.
        graph: The graph; if it was captured, its nodes have the layouts of that run.
        inputs: What the graph is compiled for. If it was captured with others, the
            run without data is believed where both laid outputs out in the same way.

    Raises:
        UnsupportedError: An output that shares memory was seen to have other strides,
            or those of an output are not known.
    """
    if not is_captured(graph):
        return observation
    noted = map(noted_layout, graph.find_nodes(op="placeholder"))
    now = map(layout_of, inputs)
    pairs = [(one, other) for one, other in zip(noted, now, strict=True)]
    same = all(one and other and one.form == other.form for one, other in pairs)
    with_layout = _with_layout if same else _with_likely_layout
    outputs: list[TensorFacts | object] = []
    for leaf, facts in zip(results_of(graph), observation.outputs, strict=True):
        if isinstance(facts, TensorFacts) and not _is_input(facts, observation):
            facts = replace(facts, creation=noted_creation(leaf))
            if is_noted(leaf):
                facts = with_layout(facts, noted_layout(leaf), observation)
        outputs.append(facts)
    return replace(observation, outputs=tuple(outputs))


def _with_layout(
    facts: TensorFacts, layout: Layout | None, observation: Observation
) -> TensorFacts:
    if layout is None or layout.shape != facts.shape:
        return _with_likely_layout(facts, layout, observation)
    triples = zip(layout.shape, layout.stride, facts.stride, strict=True)
    alike = all(ours == theirs for extent, ours, theirs in triples if extent > 1)
    if not alike and 0 not in facts.shape and _is_shared(facts, observation):
        raise refusals.VIEW_STRIDES.at("the graph's outputs")
    facts = replace(facts, stride=layout.stride)
    if any(one.storage == facts.storage for one in observation.inputs):
        return facts  # an input begins at another place in each call
    if 0 in facts.shape:
        facts = replace(facts, offset=layout.offset)
    if _is_shared(facts, observation) or layout.memory < 0:
        return facts
    return replace(facts, offset=layout.offset, storage_bytes=layout.memory)


def _with_likely_layout(
    facts: TensorFacts, layout: Layout | None, observation: Observation
) -> TensorFacts:
    if layout is None or not layout.is_like(facts.shape, facts.stride):
        raise refusals.UNKNOWN_STRIDES.at("the graph's outputs")
    return facts


def _is_input(facts: TensorFacts, observation: Observation) -> bool:
    return any(one.identity == facts.identity for one in observation.inputs)


def _is_shared(facts: TensorFacts, observation: Observation) -> bool:
    """Return whether an output shares memory with another tensor."""
    sharing = {
        other.identity
        for other in (*observation.inputs, *observation.outputs)
        if isinstance(other, TensorFacts) and other.storage == facts.storage
    }
    return len(sharing) > 1


def _facts(tensor: torch.Tensor) -> TensorFacts:
    storage = tensor.untyped_storage()
    return TensorFacts(
        dtype=tensor.dtype,
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        offset=int(tensor.storage_offset()),
        identity=id(tensor),
        storage=storage._cdata,
        storage_bytes=storage.nbytes(),
        root=id(tensor if tensor._base is None else tensor._base),
    )
