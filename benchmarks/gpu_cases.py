"""Owns what `gpu.py` compiles and runs: subgraphs, operators and models, by name.

Operators have sizes that fill a GPU. Models are functions of their inputs and then of
their state, so that an artifact holds no weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from model_cases import CASES as MODEL_CASES
from model_cases import FirstOutput, Unmasked, settle, stateless
from reporting import DTYPES
from subgraph_cases import CASES, Case
from torch import Tensor

BATCH = 8

OPERATORS = (
    Case("add-large", torch.add, ((8192, 4096),) * 2, "bandwidth"),
    Case("softmax-large", lambda x: x.softmax(-1), ((8192, 4096),), "rows"),
    Case(
        "layer-norm-large",
        lambda x, g, b: F.layer_norm(x, g.shape, g, b),
        ((8192, 4096), (4096,), (4096,)),
        "rows",
    ),
    Case("transpose-large", lambda x: x.t() + 1, ((4096, 8192),), "columns"),
    Case("gelu-large", F.gelu, ((8192, 4096),), "arithmetic of one element"),
    Case("sum-large", lambda x: x.sum(0), ((8192, 4096),), "columns, two phases"),
    Case("product-large", torch.matmul, ((4096, 4096),) * 2, "products"),
    Case(
        "linear-large",
        lambda x, w, b: F.linear(x, w, b).relu(),
        ((4096, 4096), (4096, 4096), (4096,)),
        "products",
    ),
    Case(
        "attention-large",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        ((1, 32, 4096, 128),) * 3,
        "online softmax",
    ),
)
SMALL = {case.name: case for case in (*CASES, *OPERATORS)}
# The sentence model is left out: its weights are a package that few machines have.
MODELS = [name for name in MODEL_CASES if name != "minilm"]
NAMES = [*SMALL, *MODELS]


@dataclass(frozen=True)
class Work:
    """A function with its arguments on a device.

    Attributes:
        function: The case, of all tensors.
        tensors: Arguments, and the state of a model behind them.
    """

    function: Callable[..., Any]
    tensors: list[Tensor]

    def __call__(self) -> Any:
        """Run it eagerly."""
        return self.function(*self.tensors)


def work(name: str, dtype: str, device: str) -> Work:
    """Return a case in a type on a device; weights and inputs are random."""
    if name in SMALL:
        function, tensors = SMALL[name].function, SMALL[name].arguments()
    else:
        function, tensors = _model(name, device)
    return Work(
        function,
        [
            (x.to(DTYPES[dtype]) if x.is_floating_point() else x).to(device)
            for x in tensors
        ],
    )


def _model(name: str, device: str) -> tuple[Callable[..., Any], list[Tensor]]:
    torch.manual_seed(0)
    case = MODEL_CASES[name]
    model, inputs = case.build(), case.inputs(BATCH)
    if isinstance(model, FirstOutput):
        # With a mask its Python looks at the mask's elements.
        model, inputs = Unmasked(model.model), inputs[:1]
    model = model.eval().to(device)
    inputs = tuple(x.to(device) for x in inputs)
    with torch.no_grad():
        settle(model, inputs)
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    function = stateless(model, len(inputs), list(state))
    return function, [*inputs, *(tensor.detach() for tensor in state.values())]
