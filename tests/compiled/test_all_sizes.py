"""One program for all sizes: what it computes, for which sizes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from magweld import api
from magweld.codegen.shared_code import float_lanes
from magweld.frontend import trace
from magweld.frontend.records.backends import run_eagerly
from magweld.graphs.all_sizes import AllSizes
from magweld.graphs.forms import COMPILE_AFTER, COMPILE_BESIDE, key_of
from magweld.graphs.lifted_graph import LiftedGraph
from magweld.importer.externals import External
from magweld.paced import Paced
from magweld.sized_graph import SizedGraph

# The first two lift the size, the next ones compile the program; the others use it,
# or, where no recorded graph is for them, are recorded by themselves.
FIRST = (4, 6, 9, 5, 8, 11)
SIZES = (2, 3, 7, 31, 32, 33, 64, 100, 257, 1, 0, 5)

Inputs = tuple[Tensor, ...]


@pytest.fixture(scope="module", autouse=True)
def cache_of_these_tests(
    no_cache: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Compile each graph once: several tests have the same program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGWELD_CACHE", "1")
        patch.setenv("MAGWELD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        api.compile_service.cache_clear()
        yield
    api.compile_service.cache_clear()


@pytest.fixture(autouse=True)
def compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use compiled code whether or not it is faster, and no gradients."""
    monkeypatch.setenv("MAGWELD_RACE", "0")


@pytest.fixture
def only_for_all_sizes(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Compile programs for all sizes alone, and with `--whole` those of first calls.

    Graphs for one size are what other modules compile, and take most of the time here.
    """
    if not whole:

        def by_torch(graph: fx.GraphModule, inputs: Any, **_: Any) -> Any:
            return run_eagerly(graph, inputs)

        monkeypatch.setattr(api, "compile_graph", by_torch)


class Residual(nn.Module):
    """A block of convolutions with a skip connection, then a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.skip = nn.Conv2d(4, 16, 1)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, 5)."""
        y = self.second(torch.relu(self.norm(self.first(x)))) + self.skip(x)
        y = F.max_pool2d(torch.relu(y), 3, 2, 1)
        return self.head(y.mean((2, 3)))


class Attention(nn.Module):
    """Attention of four heads over sequences of one length."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the shape of `x`."""
        batch, length, width = x.shape
        parts = self.inputs(x).view(batch, length, 3, 4, 4).permute(2, 0, 3, 1, 4)
        q, k, v = parts
        mixed = torch.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v
        return mixed.transpose(1, 2).reshape(batch, length, width)


class Flattened(nn.Module):
    """A feed-forward block on rows that are viewed as one dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 32)
        self.outer = nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the shape of `x`."""
        batch, length, width = x.shape
        rows = x.view(batch * length, width)
        return self.outer(F.gelu(self.inner(rows))).view(batch, length, width)


class Kinds(nn.Module):
    """Embeddings of words and of kinds, of which a buffer holds one row for all."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.kinds = nn.Embedding(2, 16)
        self.register_buffer("kind", torch.randint(0, 2, (1, 12)))

    def forward(self, words: Tensor) -> Tensor:
        """Return (batch, length, 16) of the numbers of words."""
        batch, length = words.shape
        kind = torch.gather(self.kind, 1, torch.arange(length)[None])
        return torch.tanh(self.words(words) + self.kinds(kind.expand(batch, length)))


def feed_forward() -> nn.Module:
    """Return a perceptron with a normalisation of each row."""
    return nn.Sequential(
        nn.Linear(16, 40), nn.GELU(), nn.Linear(40, 16), nn.LayerNorm(16)
    )


def rows(count: int) -> Inputs:
    """Return rows of 16 elements."""
    return (torch.randn(count, 16),)


ONE_PROGRAM: dict[str, tuple[Callable[[], Any], Callable[[int], Inputs]]] = {
    "elements": (
        lambda: lambda x, y: torch.tanh(x) * y + 1,
        lambda n: (torch.randn(n, 19), torch.randn(n, 19)),
    ),
    "one dimension": (
        lambda: lambda x: torch.sigmoid(x) * 3,
        lambda n: (torch.randn(n),),
    ),
    "softmax of rows": (lambda: lambda x: torch.softmax(x * 2, -1), rows),
    "feed-forward": (feed_forward, rows),
    "numbers and integers": (
        lambda: lambda x, i: torch.where(i > 3, x, -x) * 0.5,
        lambda n: (torch.randn(n, 8), torch.randint(0, 9, (n, 8))),
    ),
    "views of rows": (Flattened, lambda n: (torch.randn(n, 3, 16),)),
    "convolutions": (Residual, lambda n: (torch.randn(n, 4, 8, 8),)),
    "attention of a batch": (Attention, lambda n: (torch.randn(n, 6, 16),)),
    "positions": (
        lambda: lambda x: torch.tanh(x + torch.arange(x.shape[0])[:, None]),
        rows,
    ),
    "a row for all rows": (Kinds, lambda n: (torch.randint(0, 20, (n, 9)),)),
    "bfloat": (
        lambda: lambda x: torch.relu(x) * 2,
        lambda n: (torch.randn(n, 24).to(torch.bfloat16),),
    ),
}


def lifted(program: Any) -> list[LiftedGraph]:
    """Return the graphs with lifted sizes of a traced program."""
    graphs = [record.compiled for record in program.records]
    return [graph for graph in graphs if isinstance(graph, LiftedGraph)]


def run(model: Any, inputs: Callable[[int], Inputs], sizes: Sequence[int]) -> Any:
    """Call a traced model for some sizes, compare each result; return it."""
    if isinstance(model, nn.Module):
        model.eval()
    program = trace(model, compile="now")
    with torch.no_grad():
        for size in sizes:
            given = inputs(size)
            torch.testing.assert_close(
                program(*given), model(*given), rtol=1e-4, atol=1e-5
            )
    return program


@pytest.mark.sample(3)
@pytest.mark.usefixtures("only_for_all_sizes")
@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_one_program_answers_all_sizes(name: str) -> None:
    torch.manual_seed(0)
    make, inputs = ONE_PROGRAM[name]
    program = run(make(), inputs, (*FIRST, *SIZES))
    tiers = []
    for graph in lifted(program):
        assert graph.all_sizes is not None
        assert graph.all_sizes.reason == ""
        assert graph.compiled == 0, "no size has a program of its own"
        assert len(graph.all_sizes.tiers) <= 1
        tiers += graph.all_sizes.tiers
    assert tiers
    assert all(tier.compiled is not None for tier in tiers)
    assert "one program for all sizes: compiled" in program.explain()


class Masked(nn.Module):
    """Rows of sequences that are filled up, normalised, and masked."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = feed_forward()
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return a tensor of the shape of `x`."""
        kept = x.masked_fill(~mask[:, :, None], 0)
        return self.norm(x + self.rows(kept)) * mask.unsqueeze(-1)


# Batch and length of calls, as `FIRST` and `SIZES`.
FIRST_PAIRS = ((4, 9), (6, 13), (9, 7), (5, 5), (8, 30))
PAIRS = ((2, 2), (3, 50), (7, 7), (33, 31), (2, 129), (1, 9), (5, 1), (0, 4), (3, 0))

TWO_SIZES: dict[str, tuple[Callable[[], Any], Callable[[int, int], Inputs]]] = {
    "elements": (
        lambda: lambda x: torch.tanh(x) * 2,
        lambda b, n: (torch.randn(b, n),),
    ),
    "views of rows": (Flattened, lambda b, n: (torch.randn(b, n, 16),)),
    "normalised rows": (
        lambda: nn.Sequential(feed_forward(), feed_forward()),
        lambda b, n: (torch.randn(b, n, 16),),
    ),
    "masked rows": (
        Masked,
        lambda b, n: (torch.randn(b, n, 16), torch.rand(b, n) > 0.3),
    ),
}


@pytest.mark.sample(1)
@pytest.mark.usefixtures("only_for_all_sizes")
@pytest.mark.parametrize("name", TWO_SIZES)
def test_one_program_answers_two_sizes(name: str) -> None:
    torch.manual_seed(0)
    make, inputs = TWO_SIZES[name]
    calls = (*FIRST_PAIRS, *PAIRS)
    program = run(make(), lambda n: inputs(*calls[n]), range(len(calls)))
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    (tier,) = tiers_of(graph)
    assert graph.compiled == 0, "no pair of sizes has a program of its own"
    sized: Any = tier.compiled
    assert len(sized.relation.stand_ins.numbers) == 2
    assert set(sized.compiled.program.step_kinds()) == {"generated"}


class Encoder(nn.Module):
    """Attention over all rows of a sequence, then a feed-forward block or none."""

    def __init__(self, attend: Callable[..., Tensor], rows: nn.Module) -> None:
        super().__init__()
        self.attend = attend
        self.positions = nn.Embedding(200, 16)
        self.inputs = nn.Linear(16, 48)
        self.output = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)
        self.rows = rows

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return a tensor of the shape of `x`, (batch, length, 16)."""
        batch, length, width = x.shape
        x = x + self.positions.weight[:length]
        parts = self.inputs(x).view(batch, length, 3, 4, 4).permute(2, 0, 3, 1, 4)
        mixed = self.attend(*parts, mask).transpose(1, 2)
        x = self.norm(x + self.output(mixed.reshape(batch, length, width)))
        return x + self.rows(x)


def written_out(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Return attention with a mask that is added to the scores."""
    bias = (1.0 - mask.to(q.dtype)) * -1e4
    return torch.softmax(q @ k.transpose(-1, -2) / 2 + bias, -1) @ v


def hidden(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Return attention with hidden scores, of rows that may be hidden as a whole."""
    scores = (q @ k.mT).masked_fill(~mask, -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Return torch's attention with a mask of keys, of which one at least is seen."""
    seen = mask | (torch.arange(mask.shape[-1]) == 0)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


ATTENTION: dict[str, tuple[Callable[..., Tensor], Callable[..., tuple[int, ...]]]] = {
    "mask of keys": (written_out, lambda b, n: (b, 1, 1, n)),
    "mask of scores": (hidden, lambda b, n: (b, 1, n, n)),
    "torch's own": (fused, lambda b, n: (b, 1, 1, n)),
}


@pytest.mark.sample(1)
@pytest.mark.usefixtures("only_for_all_sizes")
@pytest.mark.parametrize("name", ATTENTION)
def test_one_program_attends_to_any_number_of_keys(name: str) -> None:
    torch.manual_seed(0)
    attend, shape = ATTENTION[name]
    calls = (*FIRST_PAIRS, *PAIRS)

    def inputs(number: int) -> Inputs:
        batch, length = calls[number]
        mask = torch.rand(shape(batch, length)) > 0.4
        return torch.randn(batch, length, 16), mask

    # One of them has what follows in an encoder.
    rows = feed_forward() if attend is written_out else nn.Identity()
    program = run(Encoder(attend, rows), inputs, range(len(calls)))
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    (tier,) = tiers_of(graph)
    assert graph.compiled == 0, "no pair of sizes has a program of its own"
    sized: Any = tier.compiled
    assert len(sized.relation.stand_ins.numbers) == 2
    kinds = sized.compiled.program.step_kinds()
    assert "generated" in kinds
    assert kinds.count("external") <= 3, "neighbours are one step"


class LastStep(nn.Module):
    """A classifier of the last step of torch's LSTM."""

    def __init__(self, units: int = 16, **options: Any) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, units, batch_first=True, **options)
        self.head = nn.Linear(units * (1 + self.lstm.bidirectional), 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, 5) of (batch, steps, 8)."""
        outputs, _ = self.lstm(x)
        return torch.relu(self.head(outputs[:, -1]))


class Pyramid(nn.Module):
    """Convolutions with steps, with norms, pools and skip connections; a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        self.second = nn.Conv2d(16, 24, 3, 2, 1, bias=False)
        self.skip = nn.Conv2d(16, 24, 1, 2)
        self.third = nn.Conv2d(24, 24, 3, 1, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (16, 24, 24))
        self.head = nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, 5)."""
        x = F.max_pool2d(F.relu(self.norms[0](self.first(x))), 3, 2, 1)
        y = F.relu(self.norms[1](self.second(x)))
        y = F.relu(self.norms[2](self.third(y)) + self.skip(x))
        return torch.relu(self.head(y.mean((2, 3))))


class Channels(nn.Module):
    """Blocks of convolutions of many channels, with norms and skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, 2, 1)
        pairs = [(32, 32), (32, 32), (32, 64), (64, 64)]
        self.inner = nn.ModuleList(
            nn.Conv2d(i, o, 3, padding=1, bias=i != o) for i, o in pairs
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o in pairs)
        self.head = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, 5)."""
        x = F.relu(self.first(x))
        one, two, three, four = zip(self.inner, self.norms, strict=True)
        for convolution, norm in (one, two):
            x = F.relu(x + norm(convolution(x)))
        x = F.relu(three[1](three[0](F.max_pool2d(x, 2))))
        x = four[1](four[0](x))
        return torch.relu(self.head(x.mean((2, 3))))


class Halved(nn.Module):
    """Images that are halved twice and doubled again, joined at every size."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(i, 8, 3, padding=1) for i in (3, 8, 8))
        self.up = nn.ModuleList(nn.ConvTranspose2d(8, 8, 2, 2) for _ in range(2))
        self.join = nn.ModuleList(nn.Conv2d(16, 8, 3, padding=1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, 8, height, width)."""
        kept = []
        for level, convolution in enumerate(self.down):
            x = F.relu(convolution(F.max_pool2d(x, 2) if level else x))
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = F.relu(join(torch.cat((kept.pop(), up(x)), 1)))
        return x


IMAGES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], tuple[int, ...]]] = {
    "with steps": (Pyramid, (32, 20, 27, 48, 39, 24), (61, 16, 9, 50, 33, 80, 200)),
    "of many channels": (Channels, (32, 20, 27, 48, 39, 24), (61, 16, 9, 50, 33, 80)),
    "halved and doubled": (Halved, (16, 12, 28, 20, 48, 24), (8, 32, 60, 76, 100)),
}


@pytest.mark.sample(1)
@pytest.mark.usefixtures("only_for_all_sizes")
@pytest.mark.parametrize("name", IMAGES)
def test_one_program_takes_images_of_any_size(name: str) -> None:
    torch.manual_seed(0)
    make, first, sizes = IMAGES[name]
    program = run(make(), lambda n: (torch.randn(1, 3, n, n),), (*first, *sizes))
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    (tier,) = tiers_of(graph)
    assert graph.all_sizes is not None
    assert graph.all_sizes.reason == ""
    assert graph.compiled == 0, "no size has a program of its own"
    sized: Any = tier.compiled
    assert sized.is_whole
    kinds = sized.compiled.program.step_kinds()
    assert kinds.count("external") == 1, "neighbours are one step"
    through_torch = graph.through_torch
    with torch.no_grad():
        for size in sizes:
            program(torch.randn(1, 3, size, size))
    assert graph.through_torch == through_torch


LAYERS: dict[str, dict[str, Any]] = {
    "one": {},
    "of other units": {"units": 10},
    "without biases": {"bias": False},
}


@pytest.mark.usefixtures("only_for_all_sizes")
@pytest.mark.parametrize("name", LAYERS)
def test_one_program_has_any_number_of_steps(name: str) -> None:
    torch.manual_seed(0)
    steps = [n for n in SIZES if n]
    model = LastStep(**LAYERS[name])
    program = run(model, lambda n: (torch.randn(3, n, 8),), (*FIRST, *steps))
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    assert graph.compiled == 0, "no number of steps has a program of its own"
    (tier,) = tiers_of(graph)
    sized: Any = tier.compiled
    kinds = sized.compiled.program.step_kinds()
    assert "generated" in kinds
    assert kinds.count("external") == 1, "views around the layer are none of memory"
    assert sized.is_whole


class Cached(nn.Module):
    """Attention of new tokens to themselves and those before; the cache grows.

    A mask is as long as the cache and the new tokens.
    """

    def __init__(self, size: int = 4) -> None:
        super().__init__()
        width = 4 * size
        self.inputs = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Return rows as those of x, and keys and values that are longer by them.

        Args:
            x: (batch, new, 4 * size).
            keys: (batch, 4, length, size).
            values: The same shape.
            mask: (batch, length + new), true where a token counts.
        """
        batch, new, width = x.shape
        parts = [
            linear(x).view(batch, new, 4, -1).transpose(1, 2) for linear in self.inputs
        ]
        keys, values = torch.cat((keys, parts[1]), 2), torch.cat((values, parts[2]), 2)
        seen = None if mask is None else mask[:, None, None]
        mixed = F.scaled_dot_product_attention(parts[0], keys, values, seen)
        x = x + mixed.transpose(1, 2).reshape(batch, new, width)
        return torch.tanh(x), keys, values


def cached(length: int, new: int, *, masked: bool = False, size: int = 4) -> Inputs:
    """Return new tokens of two texts, and keys and values of those before."""
    mask = torch.rand(2, length + new) > 0.3
    mask[:, -1] = True
    cache = torch.randn(2, 2, 4, length, size)
    return torch.randn(2, new, 4 * size), *cache, *([mask] if masked else [])


@pytest.mark.usefixtures("only_for_all_sizes")
@pytest.mark.parametrize(("new", "masked"), [(1, False), (3, True)])
def test_one_program_has_a_cache_that_grows(new: int, masked: bool) -> None:
    torch.manual_seed(0)

    def inputs(length: int) -> Inputs:
        return cached(length, new, masked=masked)

    program = run(Cached(), inputs, (*FIRST, *SIZES))
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    assert graph.compiled == 0, "no length has a program of its own"
    (tier,) = tiers_of(graph)
    sized: Any = tier.compiled
    assert sized.relation.offsets == ((0, new),)
    kinds = sized.compiled.program.step_kinds()
    assert kinds.count("external") == 1, "attention gives the longer keys and values"
    assert "generated" in kinds
    assert "magweld.batch" in sized.mlir("tiled"), "kernels without sizes are batched"


@pytest.mark.usefixtures("only_for_all_sizes")
def test_a_cache_is_joined_on_the_addresses_of_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(external: External, tensors: Any) -> Any:
        raise AssertionError(f"{external.node} runs as an operator")

    monkeypatch.setattr(External, "__call__", refuse)
    torch.manual_seed(0)
    size = float_lanes()
    lengths = (*FIRST, *SIZES)
    program = run(Cached(size), lambda n: cached(n, 1, size=size), lengths)
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    (tier,) = tiers_of(graph)
    sized: Any = tier.compiled
    assert sized.compiled.program.step_kinds().count("external") == 1
    loaded = [form.compiled.compiled.loaded for form in forms_of(sized)]
    assert loaded
    assert all(one.results_are_fresh for one in loaded)
    assert all(one._whole_calls is not None for one in loaded), "calls are one function"
    for length in (1, 7, 8, 9, 33):
        inputs = cached(length, 1, size=size)
        # The first call with a length goes step by step.
        with torch.no_grad():
            calls = [program(*inputs) for _ in range(4)]
        for call in calls[1:]:
            assert all(map(torch.equal, call, calls[0]))
    # Lengths come back once in a text, so about equal ones are timed together.
    races = [sized._race(sizes) for sizes in ((16, 17), (17, 18), (64, 65))]
    assert all(race.is_shared for race in races)
    assert races[0].turns is races[1].turns
    assert races[0].turns is not races[2].turns


@pytest.mark.usefixtures("only_for_all_sizes")
@pytest.mark.parametrize("most", [16, 32])
def test_no_length_of_a_cache_gets_a_program_of_its_own(most: int) -> None:
    torch.manual_seed(0)
    text = [*range(12, most)]
    calls = (*FIRST, *text * (COMPILE_AFTER + 1))
    program = run(Cached(), lambda length: cached(length, 1), calls)
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    assert (graph.compiled, graph.made) == (0, 1)


@pytest.mark.usefixtures("only_for_all_sizes")
def test_a_length_of_a_cache_that_comes_often_gets_a_program() -> None:
    torch.manual_seed(0)
    calls = (*FIRST, *[20] * (COMPILE_BESIDE + 1))
    program = run(Cached(), lambda length: cached(length, 1), calls)
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    assert (graph.compiled, graph.made) == (1, 2)


def test_texts_are_written_by_one_program() -> None:
    torch.manual_seed(0)
    model = Cached().eval()
    program = trace(model, compile="background")
    for _ in range(3):
        x, *cache = cached(8, 1)
        for _ in range(8):
            with torch.no_grad():
                written, expected = program(x, *cache), model(x, *cache)
            torch.testing.assert_close(written, expected, rtol=1e-4, atol=1e-5)
            x, *cache = written
        # No code is made for the first length, either.
        program.wait()
    stats = program.stats()
    assert (stats["records"], stats["compilations"]) == (1, 1)


@pytest.mark.usefixtures("only_for_all_sizes")
def test_sizes_get_a_program_late_where_torch_runs_no_part_of_that_for_all() -> None:
    torch.manual_seed(0)
    attend, shape = ATTENTION["mask of keys"]
    again = (9, 21)
    calls = (*FIRST_PAIRS, *[again] * (COMPILE_AFTER + 1))

    def inputs(number: int) -> Inputs:
        batch, length = calls[number]
        return torch.randn(batch, length, 16), torch.ones(shape(batch, length))

    program = run(Encoder(attend, nn.Identity()), inputs, range(len(calls)))
    (graph,) = [graph for graph in lifted(program) if tiers_of(graph)]
    assert graph.compiled == 0


def test_what_torch_runs_at_any_size_is_no_reason_for_programs_of_each() -> None:
    """Torch gathers the row of kinds in a program for one size as well."""
    torch.manual_seed(0)
    make, inputs = ONE_PROGRAM["a row for all rows"]
    program = run(make(), inputs, (*FIRST, *[12] * (COMPILE_AFTER + 1)))
    (graph,) = lifted(program)
    (tier,) = tiers_of(graph)
    sized: Any = tier.compiled
    kinds = [str(one.node.target) for one in _externals(sized).values()]
    assert "aten.gather.default" in kinds
    assert sized.is_whole
    assert (graph.compiled, graph.made) == (0, 1)


def _externals(sized: SizedGraph) -> Any:
    compiled: Any = sized.compiled
    return compiled.imported.externals


def forms_of(sized: SizedGraph) -> list[Any]:
    """Return what was made of a program for sizes of calls."""
    return sized.forms.values()


def tiers_of(graph: LiftedGraph) -> list[Any]:
    """Return the programs for all sizes of a graph."""
    return [] if graph.all_sizes is None else graph.all_sizes.tiers


@pytest.mark.usefixtures("only_for_all_sizes")
def test_kernels_are_generated_and_have_a_dynamic_extent() -> None:
    torch.manual_seed(0)
    program = run(feed_forward(), rows, FIRST)
    (graph,) = lifted(program)
    assert graph.all_sizes is not None
    (tier,) = graph.all_sizes.tiers
    sized: Any = tier.compiled
    assert set(sized.compiled.program.step_kinds()) == {"generated"}
    assert "tensor<?x16xf32>" in sized.mlir("tiled")


@pytest.mark.usefixtures("only_for_all_sizes")
def test_many_rows_are_shared_by_threads() -> None:
    torch.manual_seed(0)
    program = run(feed_forward(), rows, (*FIRST, 5000, 4999, 2))
    (graph,) = lifted(program)
    assert graph.compiled == 0


REFUSED: dict[str, tuple[Callable[..., Tensor], Callable[[int], Inputs], str]] = {
    "mean over rows": (lambda x: x - x.mean(0), rows, "runtime-extent"),
    "sum over rows": (lambda x: (x * 2).sum(0), rows, "runtime-extent"),
    "rows one after another": (
        lambda x: torch.cat([x, x * 2], 0) + 1,
        rows,
        "runtime-extent",
    ),
    "rows in reverse": (lambda x: torch.flip(x, [0]) * 2, rows, "runtime-extent"),
    "a size as factor": (lambda x: x * x.shape[0], rows, "size-dependent"),
    "a size as inner extent": (
        lambda x: torch.softmax(x, -1) * 2,
        lambda n: (torch.randn(3, n),),
        "size-dependent",
    ),
    "rows as columns": (lambda x: torch.tanh(x.t()) + 1, rows, "size-dependent"),
    "every row with every row": (
        lambda x, y: x[:, None] * y[None, :],
        lambda n: (torch.randn(n), torch.randn(n)),
        "size-dependent",
    ),
    "running sums": (lambda x: torch.cumsum(x * 2, 0) + 1, rows, ""),
    "a view as result": (lambda x: (x * 2, x[1:]), rows, "size-dependent"),
    "a write to an input": (lambda x: x.mul_(2) + 1, rows, "size-dependent"),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_sizes_is_compiled_for_each(name: str) -> None:
    torch.manual_seed(0)
    model, inputs, reason = REFUSED[name]
    program = trace(model, compile="now")
    with torch.no_grad():
        for size in (*FIRST, 7, 33, 2, 1, 0):
            given = inputs(size)
            expected = model(*(tensor.clone() for tensor in given))
            torch.testing.assert_close(program(*given), expected, rtol=1e-4, atol=1e-5)
    for graph in lifted(program):
        assert graph.all_sizes is not None
        if reason:
            assert reason in graph.all_sizes.reason
            assert "no one program for all sizes" in program.explain()


def first_rows(x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Return a tensor, and as many rows of a table as it has rows."""
    return torch.tanh(x) * 2, table[: x.shape[0]] * 2


def positioned(x: Tensor, table: Tensor) -> Tensor:
    """Return rows with their positions, (batch, length, 16)."""
    return torch.tanh(x + table[: x.shape[1]]) * 2


@pytest.mark.usefixtures("only_for_all_sizes")
@pytest.mark.parametrize(
    ("model", "table", "calls", "refused"),
    [
        (
            positioned,
            512,
            [(2, 500), (3, 20), (5, 30), (4, 510), (9, 512), (2, 3), (7, 8)],
            "",
        ),
        (first_rows, 64, [(4,), (9,), (60,), (30,), (7,), (64,), (5,), (90,)], ""),
        # No number that stands for a size is left up to 38.
        (first_rows, 40, [(4,), (9,), (38,), (30,), (7,), (20,), (90,)], "(40, 16)"),
    ],
)
def test_numbers_that_stand_for_sizes_are_no_more_than_a_table_has(
    model: Any, table: int, calls: list[tuple[int, ...]], refused: str
) -> None:
    torch.manual_seed(0)
    rows_of_table = torch.randn(table, 16)

    def inputs(number: int) -> Inputs:
        return torch.randn(*calls[number], 16), rows_of_table

    program = run(model, inputs, range(len(calls)))
    graphs = [one.all_sizes for one in lifted(program) if one.all_sizes is not None]
    reasons = [sizes.reason for sizes in graphs]
    if refused:
        assert any("size-dependent" in r and refused in r for r in reasons)
        assert any(f"{__file__}:" in reason for reason in reasons)
    else:
        assert reasons == [""] * len(reasons)
        assert sum(len(sizes.tiers) for sizes in graphs) == 1


def test_tensors_with_gaps_get_their_own_program() -> None:
    torch.manual_seed(0)
    model = feed_forward().eval()
    program = run(model, rows, FIRST)
    with torch.no_grad():
        for size in (5, 6, 9, 12):
            for given in (
                torch.randn(size, 32)[:, ::2],
                torch.randn(2 * size, 16)[::2],
                torch.randn(16, size).t(),
            ):
                torch.testing.assert_close(
                    program(given), model(given), rtol=1e-4, atol=1e-5
                )


@pytest.mark.usefixtures("only_for_all_sizes")
@torch.no_grad()
def test_a_hit_looks_up_its_form_and_follows_evictions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = feed_forward()
    program = run(model, rows, FIRST)
    (graph,) = lifted(program)
    assert graph.all_sizes is not None
    sized: Any = graph.all_sizes.tiers[0].compiled
    asked: list[Any] = []
    form = SizedGraph.form

    def counted(self: SizedGraph, *given: Any) -> Any:
        asked.append(given)
        return form(self, *given)

    monkeypatch.setattr(SizedGraph, "form", counted)

    def check(given: Tensor) -> None:
        torch.testing.assert_close(program(given), model(given), rtol=1e-4, atol=1e-5)

    for _ in range(3):
        check(torch.randn(11, 16))
    assert not asked, "known sizes are not worked out again"
    # A form of one kernel has no arena.
    monkeypatch.setattr(sized.forms, "_limit", -1)
    check(torch.randn(40, 16))  # the other forms go
    assert (len(sized.forms), len(asked)) == (1, 1)
    check(torch.randn(11, 16))
    check(torch.randn(11, 16))
    assert (len(sized.forms), len(asked)) == (1, 2)
    assert graph.compiled == 0


@pytest.mark.usefixtures("only_for_all_sizes")
def test_sizes_that_agree_by_chance_are_told_apart() -> None:
    torch.manual_seed(0)

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.tanh(x) * 2, torch.sigmoid(y) + 1

    def inputs(first: int, second: int) -> Inputs:
        return torch.randn(first, 8), torch.randn(second, 8)

    program = trace(model, compile="now")
    pairs = [(n, n) for n in FIRST]
    pairs += [(3, 7), (7, 3), (5, 5), (12, 31), (31, 2)]
    with torch.no_grad():
        for pair in pairs:
            given = inputs(*pair)
            torch.testing.assert_close(
                program(*given), model(*given), rtol=1e-4, atol=1e-5
            )


def test_weights_may_change_between_calls() -> None:
    torch.manual_seed(0)
    model = feed_forward().eval()
    program = run(model, rows, FIRST)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5)
        for size in (5, 12, 12):
            given = torch.randn(size, 16)
            torch.testing.assert_close(
                program(given), model(given), rtol=1e-4, atol=1e-5
            )


def often_used(moment: str) -> tuple[Any, LiftedGraph, Callable[[int], None]]:
    """Return a program that has one for all sizes, its graph, and a checked call."""
    torch.manual_seed(0)
    model = feed_forward().eval()
    program = trace(model, compile=moment)

    def call(size: int) -> None:
        (given,) = rows(size)
        with torch.no_grad():
            torch.testing.assert_close(
                program(given), model(given), rtol=1e-4, atol=1e-5
            )

    for size in (*FIRST, 9):
        call(size)
        program.wait()
    (graph,) = lifted(program)
    return program, graph, call


def test_sizes_that_are_used_often_get_a_program_of_their_own() -> None:
    _, graph, call = often_used("now")
    assert (graph.compiled, graph.made) == (0, 1)
    for _ in range(COMPILE_BESIDE - 1):
        call(12)
    assert graph.compiled == 0
    call(12)
    call(12)
    assert (graph.compiled, graph.made) == (1, 2)
    assert graph.sizes_of_all is None
    call(13)  # still by the program for all sizes
    assert (graph.compiled, graph.made) == (1, 2)
    # Where it does not pay, the sizes are compiled once that may have.
    key = graph.sizes_of_all
    assert not graph.want_own(key, (2.0, 1.0), 0)
    assert graph.want_own(key, (2.0, 1.0), 1 << 30)
    call(12)
    assert (graph.compiled, graph.made) == (1, 2)
    call(13)
    assert (graph.compiled, graph.made) == (2, 3)


def test_the_program_for_all_sizes_answers_while_another_one_is_compiled() -> None:
    program, graph, call = often_used("background")
    # No other test has compiled it for this size.
    call(14)
    program.wait()
    through_torch = graph.through_torch
    for _ in range(COMPILE_BESIDE + 20):
        call(14)
    assert graph.compiled == 1
    program.wait()
    call(14)
    assert graph.through_torch == through_torch


def test_calls_do_not_wait_for_what_stands_for_sizes() -> None:
    """One node may be many operators; what runs it without data pauses at each."""
    ran: list[nn.Module] = []
    cell = nn.GRU(4, 4, batch_first=True)
    cell.register_forward_pre_hook(lambda module, _: ran.append(module))
    graph = fx.Graph()
    graph.output(graph.call_module("cell", (graph.placeholder("x"),)))
    module = fx.GraphModule({"cell": cell}, graph)
    asked: list[Any] = []

    def compile_sizes(_graph: Any, _tensors: Any, examples: Any, _run: Any) -> None:
        asked.append(examples)

    sizes = AllSizes(compile_sizes, lambda _: module, module)
    for length in FIRST:
        tensors = [torch.zeros(2, length, 4)]
        assert sizes.find(key_of(tensors, ()), tensors, ()) is None
    (examples,) = asked
    assert not ran
    work, turns = Paced(examples), 1
    while not work.go_on(0.0):
        turns += 1
    assert ran
    assert turns > 20
    assert isinstance(work.outcome, tuple)
    first, second = (given[0].shape for given in work.outcome[0].inputs)
    assert first[1] != second[1]
    assert (first[0], first[2]) == (second[0], second[2]) == (2, 4)
