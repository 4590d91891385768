"""Owns what eager torch promises about a graph that needs gradients.

The graph is run once, gradients included, on tensors without data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses import FakeTensorMode
from torch.autograd.graph import increment_version

from magweld.frontend.operators.edges import edge_of, edges_behind
from magweld.frontend.operators.watch import OperatorWatch
from magweld.importer.epilogue import Window
from magweld.importer.nodes import draws
from magweld.importer.observation import GraphRunner
from magweld.importer.placing import tensors_without_data
from magweld.layouts import creation_of
from magweld.logs import expected_errors
from magweld.storages import is_size_of, storage_of
from magweld.training import refusals


@dataclass(frozen=True)
class InputItself:
    """An output that is an input."""

    input: int


@dataclass(frozen=True)
class InputView:
    """An output without gradient that shares memory with an input.

    Attributes:
        input: Its position.
        window: The part of its memory, None for all that the input shows.
        detached: Whether the output is out of the input's autograd graph.
        creation: See `creation_of`.
    """

    input: int
    window: Window | None
    detached: bool
    creation: str


@dataclass(frozen=True)
class Value:
    """An output that the forward half computes.

    Attributes:
        number: Which of the computed ones; equal for outputs that are one tensor.
    """

    number: int


@dataclass(frozen=True)
class ValueView:
    """An output without gradient that shares memory with a computed one.

    Attributes:
        number: Which of the computed ones; it has all of that memory.
        window: The part of it, None for all.
        counted: Whether the version of the other counts what is written to it.
        creation: See `creation_of`.
    """

    number: int
    window: Window | None
    counted: bool
    creation: str


Output = InputItself | InputView | Value | ValueView


@dataclass(frozen=True)
class Form:
    """Type and layout of a computed output; strides and offset count elements.

    Attributes:
        position: Of the first output that is this tensor.
        differentiable: Whether a gradient may come back for it.
        creation: See `creation_of`; "" where a gradient may come back.
        memory: Bytes of all of the memory that it is in.
    """

    position: int
    differentiable: bool
    creation: str
    device: torch.device
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    memory: int

    @property
    def is_all_memory(self) -> bool:
        """Whether the memory has the elements of the output and no others."""
        return not self.offset and is_size_of(self.shape, self.dtype, self.memory)

    def placed(self, values: torch.Tensor) -> torch.Tensor:
        """Return values in memory of their own, where and as the output lies."""
        window = Window(self.shape, self.stride, self.offset)
        count = self.memory // self.dtype.itemsize
        memory = torch.empty(count, dtype=self.dtype, device=self.device)
        # Outputs count the writes of the program, and not this one.
        window.fill(memory.data, values)
        return window.of(memory)


@dataclass(frozen=True)
class TrainingFacts:
    """One run of a graph without data.

    Attributes:
        outputs: How each output comes about.
        values: The computed outputs.
        intermediate: Numbers of those that another one follows from.
        written: Inputs that are written to.
        silently: Those of them that do not count it.
        further: Those that count several writes, and how many beside one.
        versions: Numbers of computed outputs, and how many writes they count.
        draws: Number of elements of each draw of random numbers, in order.
    """

    outputs: tuple[Output, ...]
    values: tuple[Form, ...]
    intermediate: tuple[int, ...]
    written: tuple[int, ...]
    silently: frozenset[int]
    further: tuple[tuple[int, int], ...]
    versions: tuple[tuple[int, int], ...]
    draws: tuple[int, ...]


class _Watch(OperatorWatch):
    """Collects writes and draws of a whole run."""

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.random = False
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if self.random and draws(func, args, kwargs or {}):
            self.draws.append(elements_of(result))
        return result


def elements_of(result: Any) -> int:
    """Return the number of elements of the (first) tensor of a result."""
    first = result[0] if isinstance(result, (tuple, list)) else result
    return int(first.numel())


def stand_ins(
    mode: FakeTensorMode, inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Return leaves without data that need gradients where the inputs do.

    Each is in memory of its own: which inputs share memory may be another in each call.
    """
    fakes = tensors_without_data(mode, [tensor.detach() for tensor in inputs], None)
    return [
        fake.requires_grad_(tensor.requires_grad)
        for fake, tensor in zip(fakes, inputs, strict=True)
    ]


def observe_training(
    graph: fx.GraphModule, inputs: Sequence[torch.Tensor]
) -> TrainingFacts:
    """Run a graph once on tensors without data, gradients included.

    Args:
        graph: A graph at torch level that returns a tuple of tensors.
        inputs: One real tensor per placeholder; they are not touched.

    Raises:
        UnsupportedError: The graph must be left to torch.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = stand_ins(mode, inputs)
    versions = [fake._version for fake in fakes]
    watch = _Watch()
    results = run_with_gradients(GraphRunner(graph), mode, watch, fakes)
    written = _written(inputs, fakes, watch)
    counts = [(i, fakes[i]._version - versions[i]) for i in written]
    counted = [tensor._version for tensor in results]
    outputs, forms = _outputs(fakes, results)
    with torch.enable_grad(), mode:
        for form in forms:
            _require_writable(results[form.position])
    intermediate = _intermediate(graph, inputs, forms)
    return TrainingFacts(
        outputs,
        forms,
        intermediate,
        written,
        silently=frozenset(i for i, count in counts if not count),
        further=tuple((i, count - 1) for i, count in counts if count > 1),
        versions=tuple(
            (n, counted[form.position])
            for n, form in enumerate(forms)
            if counted[form.position]
        ),
        draws=tuple(watch.draws),
    )


def run_with_gradients(
    runner: GraphRunner,
    mode: FakeTensorMode,
    watch: OperatorWatch,
    inputs: Sequence[torch.Tensor],
) -> Sequence[torch.Tensor]:
    """Return the results of a graph on tensors without data, which draws nothing.

    Args:
        runner: Runs the graph.
        mode: What the tensors are made in.
        watch: Sees each operator.
        inputs: One tensor without data per placeholder.

    Raises:
        UnsupportedError: It cannot be run so, or leaves another grad mode.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        with mode, watch, expected_errors():
            results: Sequence[torch.Tensor] = runner.run(*inputs)
        if not torch.is_grad_enabled():
            raise refusals.GRAD_MODE.at("the graph")
    return results


def _intermediate(
    graph: fx.GraphModule, inputs: Sequence[torch.Tensor], forms: Sequence[Form]
) -> tuple[int, ...]:
    """Return the numbers of results that another one follows from."""
    if sum(form.differentiable for form in forms) < 2:
        return ()
    # A run of its own: views are other ones for torch once their history was asked.
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    runner = GraphRunner(graph)
    found = run_with_gradients(runner, mode, _Watch(), stand_ins(mode, inputs))
    results = [found[form.position] for form in forms]
    edges = edges_behind(results)
    return tuple(n for n, result in enumerate(results) if edge_of(result) in edges)


def _written(
    inputs: Sequence[torch.Tensor], fakes: Sequence[torch.Tensor], watch: _Watch
) -> tuple[int, ...]:
    written = tuple(
        number for number, fake in enumerate(fakes) if storage_of(fake) in watch.written
    )
    storages = [storage_of(tensor) for tensor in inputs]
    for number in written:
        if fakes[number].requires_grad:
            raise refusals.WRITTEN_INPUT.at(f"input {number}", "a tensor")
        if storages.count(storages[number]) > 1:
            raise refusals.WRITTEN_INPUT.at(f"input {number}", "shared memory")
    return written


def _outputs(
    fakes: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
) -> tuple[tuple[Output, ...], tuple[Form, ...]]:
    by_storage = {storage_of(fake): number for number, fake in enumerate(fakes)}
    numbers: dict[int, int] = {}
    bases = _bases(results)
    outputs: list[Output] = []
    forms: list[Form] = []
    for position, tensor in enumerate(results):
        itself = [n for n, fake in enumerate(fakes) if fake is tensor]
        source = by_storage.get(storage_of(tensor))
        if itself:
            outputs.append(InputItself(itself[0]))
            continue
        if source is not None:
            outputs.append(_view(source, fakes[source], tensor))
            continue
        base = bases.get(storage_of(tensor), position)
        whole = results[base]
        if id(whole) not in numbers:
            numbers[id(whole)] = len(forms)
            forms.append(_form(base, whole))
        number = numbers[id(whole)]
        outputs.append(
            Value(number)
            if tensor is whole
            else _view_of_value(number, forms[number], whole, tensor)
        )
    _require_apart([results[form.position] for form in forms])
    return tuple(outputs), tuple(forms)


def _bases(results: Sequence[torch.Tensor]) -> dict[int, int]:
    """Return the first result that needs gradients in each memory, by storage."""
    found: dict[int, int] = {}
    for position, tensor in enumerate(results):
        if tensor.requires_grad:
            found.setdefault(storage_of(tensor), position)
    return found


def _view_of_value(
    number: int, form: Form, whole: torch.Tensor, tensor: torch.Tensor
) -> Output:
    same = tensor.dtype == whole.dtype and tensor.device == whole.device
    if tensor.requires_grad or not same or not form.is_all_memory:
        raise refusals.OUTPUT_VIEW.at("the graph's outputs", "another output")
    window = Window(
        tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset())
    )
    is_whole = window == Window(form.shape, form.stride)
    version = whole._version
    increment_version(tensor)
    return ValueView(
        number,
        None if is_whole else window,
        whole._version > version,
        creation_of(tensor, grad_enabled=True),
    )


def _view(number: int, source: torch.Tensor, tensor: torch.Tensor) -> Output:
    if tensor.requires_grad or tensor.dtype != source.dtype:
        raise refusals.OUTPUT_VIEW.at("the graph's outputs", "an input")
    offset = int(tensor.storage_offset()) - int(source.storage_offset())
    window = Window(tuple(tensor.shape), tuple(tensor.stride()), offset)
    creation = creation_of(tensor, grad_enabled=True)
    if window == _window_of(source) and not tensor._is_view():
        return InputView(number, None, True, creation)
    return InputView(number, window, source.requires_grad, creation)


def _window_of(source: torch.Tensor) -> Window:
    return Window(tuple(source.shape), tuple(source.stride()))


def _form(position: int, tensor: torch.Tensor) -> Form:
    return Form(
        position,
        tensor.requires_grad,
        "" if tensor.requires_grad else creation_of(tensor, grad_enabled=True),
        tensor.device,
        tensor.dtype,
        tuple(tensor.shape),
        tuple(tensor.stride()),
        int(tensor.storage_offset()),
        tensor.untyped_storage().nbytes(),
    )


def _require_writable(tensor: torch.Tensor) -> None:
    """Write to a result, as its user may; torch refuses that of some views."""
    if tensor.requires_grad and tensor._is_view():
        try:
            tensor.fill_(0)
        except RuntimeError as error:
            place = "the graph's outputs"
            raise refusals.RESTRICTED_VIEW.at(place) from error


def _require_apart(results: Sequence[torch.Tensor]) -> None:
    storages = [storage_of(tensor) for tensor in results]
    if len(set(storages)) < len(storages):
        raise refusals.OUTPUT_VIEW.at("the graph's outputs", "another output")
