"""Owns the models of MagPy's evaluation that transformers and timm have.

MonoDepth, the quantised ResNeXt and TridentNet come from repositories of their own, and
are left out. Weights are random.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import torch
from model_cases import Case, models
from reporting import benchmark_options, write_report
from timing import interleaved, seconds_of
from torch import Tensor, nn
from whole_models import alone, difference

# Of a result, relative to the largest that is expected.
TOLERANCE = 1e-3
TOKENS = 256
ALIGN_TOKENS = 64
ALIGN_SIDE = 289
WORDS = 30000


class Part(nn.Module):
    """A model of transformers that returns one tensor of its result."""

    def __init__(self, model: nn.Module, output: str, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.output = output
        self.names = names

    def forward(self, *tensors: Tensor) -> Tensor:
        """Return the named result of the model's arguments by name."""
        result = self.model(**dict(zip(self.names, tensors, strict=True)))
        found: Tensor = getattr(result, self.output)
        return found


def _bert(layers: int) -> nn.Module:
    from transformers import BertConfig, BertModel

    config = BertConfig(num_hidden_layers=layers)
    names = ("input_ids", "attention_mask")
    return Part(BertModel(config, add_pooling_layer=False), "last_hidden_state", names)


def _deberta(layers: int) -> nn.Module:
    from transformers import DebertaConfig, DebertaModel

    # Relative positions as in the published base model.
    config = DebertaConfig(
        num_hidden_layers=layers,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        max_relative_positions=-1,
        position_biased_input=False,
    )
    names = ("input_ids", "attention_mask")
    return Part(DebertaModel(config), "last_hidden_state", names)


def _align(layers: int) -> nn.Module:
    from transformers import AlignConfig, AlignModel

    config = AlignConfig()
    config.text_config.num_hidden_layers = layers
    names = ("input_ids", "pixel_values", "attention_mask")
    return Part(AlignModel(config), "logits_per_image", names)


def _timm(name: str) -> nn.Module:
    return models.load_image_model(name)


def words(length: int) -> Callable[[int], tuple[Tensor, ...]]:
    """Return a maker of token numbers with masks of ones."""

    def make(batch: int) -> tuple[Tensor, ...]:
        ids = torch.randint(1000, WORDS, (batch, length))
        return ids, torch.ones_like(ids)

    return make


def _images(side: int) -> Callable[[int], tuple[Tensor, ...]]:
    return lambda batch: (torch.randn(batch, 3, side, side),)


def _pairs(batch: int) -> tuple[Tensor, ...]:
    ids, mask = words(ALIGN_TOKENS)(batch)
    return ids, torch.randn(batch, 3, ALIGN_SIDE, ALIGN_SIDE), mask


def cases(layers: int = 12) -> dict[str, Case]:
    """Return the models at the sizes of the paper, encoders with some layers."""
    return {
        "resnet18": Case(lambda: _timm("resnet18"), _images(224)),
        "bert": Case(lambda: _bert(layers), words(TOKENS)),
        "deberta": Case(lambda: _deberta(layers), words(TOKENS)),
        "densenet121": Case(lambda: _timm("densenet121"), _images(224)),
        "align": Case(lambda: _align(layers), _pairs),
    }


CASES = cases()


def time_peers(
    make: Mapping[str, Callable[[], Callable[[], Any]]], expected: Tensor, rounds: int
) -> dict[str, Any]:
    """Time calls in turns.

    Args:
        make: Makes the call of each peer.
        expected: What it returns.
        rounds: How often each is timed.

    Returns:
        `times`, seconds of first calls, and why peers are `absent`: what goes wrong in
        a peer, whatever it is, or a result that differs.
    """
    calls: dict[str, Callable[[], Any]] = {}
    absent: dict[str, str] = {}
    first: dict[str, float] = {}
    for peer, made in make.items():
        try:
            call = made()
            first[peer] = seconds_of(call)
            error = difference(call(), expected)
        except Exception as reason:
            absent[peer] = f"{type(reason).__name__}: {reason}".splitlines()[0][:200]
            continue
        if not error <= TOLERANCE:
            absent[peer] = f"wrong result: differs by {error:.1e}"
            continue
        calls[peer] = call
    times = interleaved(calls, rounds)
    return {
        "times": {peer: t.as_dict() for peer, t in times.items()},
        "first_call_s": first,
        "absent": absent,
    }


def time_models(
    description: str | None,
    rounds: int,
    script: str,
    run_case: Callable[..., dict[str, Any]],
    layers: int,
    names: Iterable[str] = CASES,
) -> int:
    """Time the models that the command line chooses; report after each.

    Args:
        description: Text of the help.
        rounds: Default of `--rounds`.
        script: File of the benchmark, after which its report is named.
        run_case: Takes name, layers, rounds and threads. It runs in a process of its
            own, and gives `times`, and the reasons of those that are `absent`.
        layers: Default of `--layers`.
        names: What may be chosen.

    Returns:
        1 if something has no times, else 0.
    """
    numbers = {"layers": layers}
    options = benchmark_options(description, names, rounds, script, numbers=numbers)
    results: list[dict[str, Any]] = []
    for name in options.cases:
        settings = (name, options.layers, options.rounds, options.threads)
        result = {"case": name, **alone(run_case, *settings)}
        results.append(result)
        for peer, times in result.get("times", {}).items():
            print(f"{name} {peer}: {times['min_ms']:.2f} ms", flush=True)
        for peer, reason in result.get("absent", {}).items():
            print(f"{name} {peer}: {reason}", flush=True)
        write_report(options.o, options.threads, results, layers=options.layers)
    return int(any(r.get("absent") or "died" in r for r in results))
