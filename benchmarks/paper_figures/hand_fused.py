"""Encoders that people fused by hand, and what the compiler makes of the same layers.

    python benchmarks/paper_figures/hand_fused.py [--cases NAME ...] [--layers N]
        [--rounds N] [--threads N] [-o FILE]

Welder, Table 3. `hand-fused` is torch's own fused encoder layer, one operator that is
written by hand. `eager` is the same model operator by operator, and the other peers get
it like this; `onnxruntime` has hand-written operators for parts of a layer. The encoder
has the width, heads and inner width of BERT-base, and 128 tokens.
"""

from __future__ import annotations

import copy
import warnings
from functools import partial
from typing import Any

import torch
from magpy_models import time_models, time_peers
from model_peers import PEERS, Call, Inputs
from torch import nn

LAYERS = 4
WIDTH, HEADS, INNER, TOKENS = 768, 12, 3072, 128
BATCHES = {"encoder-1x128": 1, "encoder-8x128": 8}
COMPARED = ("eager", "torch.compile", "onnxruntime", "magweld")


def encoder(layers: int) -> nn.Module:
    """Return an encoder with random weights, to be used for inference."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER, activation="gelu", batch_first=True
    )
    return nn.TransformerEncoder(layer, layers).eval()


def hand_fused(model: nn.Module, inputs: Inputs) -> Call:
    """Torch's fused encoder layers; another peer may not use them."""
    twin = copy.deepcopy(model)

    def call() -> Any:
        torch.backends.mha.set_fastpath_enabled(True)
        try:
            return twin(*inputs)
        finally:
            torch.backends.mha.set_fastpath_enabled(False)

    return call


@torch.no_grad()
def run_case(name: str, layers: int, rounds: int, threads: int) -> dict[str, Any]:
    """Measure all peers of one size."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    torch.backends.mha.set_fastpath_enabled(False)
    model = encoder(layers)
    inputs = (torch.randn(BATCHES[name], TOKENS, WIDTH),)
    expected = model(*inputs)
    makers = {peer: PEERS[peer] for peer in COMPARED} | {"hand-fused": hand_fused}
    make = {peer: partial(maker, model, inputs) for peer, maker in makers.items()}
    return time_peers(make, expected, rounds)


def main() -> int:
    """Run the chosen sizes; return 1 if a peer has no times."""
    return time_models(__doc__, 20, __file__, run_case, LAYERS, BATCHES)


if __name__ == "__main__":
    raise SystemExit(main())
