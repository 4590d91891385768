"""Functions of torch that ask for its modes: none of them goes on in other frames.

They are told of the modes that observe the run, and do what is right with these alone.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from magweld.frontend import trace

CALLS = 6


def doubled(gradient: Tensor) -> Tensor:
    return gradient * 2


def with_break(gradient: Tensor) -> Tensor:
    zlib.crc32(b"")
    return gradient * 3


def dot(y: Tensor) -> Tensor:
    return torch.einsum("ij,kj->ik", y, y)


# What is done to a result of the program that may need a gradient.
ASKING: dict[str, Callable[[Tensor], Any]] = {
    "register_hook": lambda y: y.register_hook(doubled).id >= 0,
    "register_hook that breaks": lambda y: y.register_hook(with_break).id >= 0,
    "retain_grad": lambda y: y.retain_grad(),
    "is_shared": lambda y: y.is_shared(),
    "share_memory_": lambda y: y.detach().share_memory_(),
    "storage_type": lambda y: y.storage_type(),
    "storage": lambda y: len(y.storage()),
    "__format__": lambda y: f"{y.sum():.3f}",
    "__repr__": repr,
    "__array__": lambda y: y.detach().__array__().tolist(),
    "__contains__": lambda y: 3.0 in y,
    "__reduce_ex__": lambda y: y.detach().__reduce_ex__(2)[1][2],
    "__deepcopy__": lambda y: copy.deepcopy(y.detach()),
    "__dir__": lambda y: "shape" in dir(y),
    "__reversed__": lambda y: y.__reversed__(),
    "__len__": len,
    "__rdiv__": lambda y: 2.0 / y,
    "__dlpack_device__": lambda y: tuple(map(int, y.__dlpack_device__())),
    "dim_order": lambda y: y.dim_order(),
    "unique": lambda y: y.detach().unique(),
    "torch.unique": lambda y: torch.unique(
        y.detach(), return_inverse=True, return_counts=True
    ),
    "unique_consecutive": lambda y: y.detach().unique_consecutive(return_counts=True),
    "torch.unique_consecutive": lambda y: torch.unique_consecutive(
        y.detach(), return_inverse=True
    ),
    "norm": lambda y: y.norm(dim=0),
    "torch.norm": lambda y: torch.norm(y, dim=1),
    "split": lambda y: y.split(1),
    "split by a tensor": lambda y: y.split(torch.tensor(1)),
    "torch.split": lambda y: torch.split(y, [1, 1]),
    "unflatten": lambda y: y.unflatten(1, (1, 3)),
    "resize": lambda y: y.detach().resize(3, 2),
    "stft": lambda y: torch.stft(
        y.flatten(), 4, 2, window=torch.ones(4), return_complex=False
    ),
    "lu": lambda y: torch.lu(y[:, :2].detach())[1],
    "einsum": dot,
    "tensordot": lambda y: torch.tensordot(y, y, dims=2),
    "cdist": lambda y: torch.cdist(y, y + 1),
    "meshgrid": lambda y: torch.meshgrid(y[0], y[1], indexing="ij"),
    "unravel_index": lambda y: torch.unravel_index(torch.tensor(4), y.shape),
    "block_diag": lambda y: torch.block_diag(y, y),
    "uniform_": lambda y: nn.init.uniform_(y.detach().clone()),
    "kaiming_normal_": lambda y: nn.init.kaiming_normal_(y.detach().clone()),
    "gumbel_softmax": functional.gumbel_softmax,
    "interpolate": lambda y: functional.interpolate(y[None], scale_factor=2.0),
    "embedding": lambda y: functional.embedding(torch.tensor([1, 0]), y),
    "max_pool1d": lambda y: functional.max_pool1d(y[None], 2, return_indices=True),
    "fractional_max_pool2d": lambda y: functional.fractional_max_pool2d(
        y[None, :, None].expand(1, 2, 3, 3), 2, output_size=2
    ),
    "multi_head_attention_forward": lambda y: functional.multi_head_attention_forward(
        *(y[:, None], y[:, None], y[:, None], 3, 1, torch.ones(9, 3), None, None),
        *(None, False, 0.0, torch.eye(3), None),
    ),
    "gaussian_nll_loss": lambda y: functional.gaussian_nll_loss(
        y, y * 2, torch.ones(2, 3)
    ),
}


def shown(result: Any) -> str:
    torch.set_printoptions(precision=4)
    return repr(result)


def ends_as_eager(program: Callable[..., Any], needs_gradient: bool) -> None:
    """Call a program traced and eagerly: results and gradients are the same."""
    fast = trace(program, backend="eager")
    for call in range(CALLS):
        found = []
        for function in (program, fast):
            torch.manual_seed(call)
            x = (torch.arange(6.0).reshape(2, 3) + call).requires_grad_(needs_gradient)
            y, result = function(x)
            if needs_gradient:
                y.sum().backward()
            found.append(shown((y, result, x.grad)))
        assert found[0] == found[1], fast.explain()


@pytest.mark.sample(50)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("needs_gradient", [True, False])
def test_in_a_program(name: str, needs_gradient: bool) -> None:
    ask = ASKING[name]
    if not needs_gradient and name.startswith(("register_hook", "retain_grad")):
        pytest.skip("torch refuses it")

    def inner(y: Tensor) -> Any:
        return ask(y)

    def program(x: Tensor) -> Any:
        y = torch.tanh(x / 9) * 2 + 1
        z = torch.relu(y)
        result = inner(z)
        return z * 2 + y, result

    ends_as_eager(program, needs_gradient)


ASKING_LEAVES: dict[str, Callable[[Tensor], Any]] = {
    **ASKING,
    "register_post_accumulate_grad_hook": lambda w: bool(
        w.register_post_accumulate_grad_hook(lambda leaf: None)
    ),
    "share_memory_": lambda w: w.share_memory_(),
    "__array__": lambda w: w.__array__().tolist() if not w.requires_grad else 0,
    "__reduce_ex__": lambda w: w.__reduce_ex__(2)[0].__name__,
    "__deepcopy__": copy.deepcopy,
    "unique": lambda w: w.unique(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ASKING_LEAVES)
def test_of_a_parameter(name: str) -> None:
    """Without modes, nothing is there that a call on one could be handed to."""
    ask = ASKING_LEAVES[name]

    def program(x: Tensor, weight: Tensor) -> Any:
        y = torch.relu(x * weight) + 1
        result = ask(weight)
        return y * 2 + weight, result

    fast = trace(program, backend="eager")
    for call in range(CALLS):
        found = []
        for function in (program, fast):
            torch.manual_seed(call)
            weight = nn.Parameter(torch.arange(6.0).reshape(2, 3) + call)
            if name.endswith("_") and name[:2] != "__":
                weight.requires_grad_(False)
            y, result = function(torch.ones(2, 3, requires_grad=True), weight)
            y.sum().backward()
            found.append(shown((y, result, weight.grad)))
        assert found[0] == found[1], fast.explain()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "program",
    [
        Tensor.is_shared,
        Tensor.__contains__,
        torch.unique,
        torch.functional.norm,
        torch.Tensor.dim_order,
    ],
)
def test_traced_for_itself(program: Any) -> None:
    args = (2.0,) if program is Tensor.__contains__ else ()
    fast = trace(program, backend="eager")
    for call in range(CALLS):
        x = torch.arange(6.0).reshape(2, 3) + call
        assert shown(fast(x, *args)) == shown(program(x, *args)), fast.explain()


def test_a_frame_that_was_told_of_modes_is_left_as_a_whole() -> None:
    """The break is the call of the function, in the program."""

    def program(x: Tensor) -> Tensor:
        y = torch.relu(x * 2) + 1
        y.register_hook(doubled)
        return torch.softmax(y, -1) * 3

    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        fast(torch.ones(2, 3, requires_grad=True))
    assert fast.stats()["hits"] > 0
    ends = [record.ends.where for record in fast.records if record.ends is not None]
    assert all("in program" in where for where in ends), ends


@pytest.mark.parametrize("left", [0, 2, 5])
@pytest.mark.parametrize("grad", [True, False])
def test_encoders_leave_padding_out_as_in_eager(left: int, grad: bool) -> None:
    """They do if they are told of no modes, and give zeros there."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    padding = torch.arange(5).expand(2, 5) >= torch.tensor([[left], [5]])

    def program(x: Tensor) -> Tensor:
        y = torch.tanh(x * 2) + 1
        z = encoder(y, src_key_padding_mask=padding)
        return torch.relu(z) * 3 + z

    fast = trace(program, backend="eager")
    for call in range(CALLS):
        torch.manual_seed(call)
        x = torch.randn(2, 5, 8)
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(fast(x), program(x), equal_nan=True)
    if grad:
        assert fast.stats()["hits"] > 0
