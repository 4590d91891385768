"""Programs about torch's own semantics, their surroundings changing between calls.

Each is compared with its eager twin in results, aliases, state, exceptions and random
numbers. They look for what a guard or a recorded operator may leave out.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

IMPORTS = """
import gc
import numpy as np
import zlib
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.utils import _pytree as pytree
torch.manual_seed(0)
def A(*shape, dtype=torch.float32):
    return torch.arange(math.prod(shape), dtype=dtype).reshape(shape).add(1)
def tried(call, *args):
    try:
        return call(*args)
    except (RuntimeError, IndexError) as error:
        return type(error).__name__
"""


@dataclass
class Case:
    """A program `f(x, v)` and its calls, each "changes before it | arguments".

    Attributes:
        hits: Number of calls that records must answer at least.
    """

    program: str
    calls: list[str]
    hits: int
    setup: str = ""


def twice(*calls: str) -> list[str]:
    return [call for call in calls for _ in range(2)]


CASES = {
    "out": Case(
        "torch.add(x, 1, out=v); return torch.mul(x, 2, out=x) is x, v * 2",
        twice(
            "A(2, 3), torch.zeros(2, 3)",
            "A(2, 3), torch.zeros(3, 2).t()",
            "A(2, 3), torch.zeros(2, 6)[:, ::2]",
            "A(2, 3), torch.zeros(2, 3, dtype=torch.float64)",
            "A(2, 3), torch.zeros(4)",
        ),
        4,
    ),
    "out in tuples": Case(
        "v, i = torch.empty(0), torch.empty(0, dtype=torch.long);"
        " r = torch.max(x, 1, out=(v, i)); return r, r[0] is v, i.shape",
        ["A(2, 3)", "A(2, 3)", "A(3, 2).t()", "-A(3, 2).t()"],
        2,
    ),
    "out gives a new tensor its size": Case(
        "z = torch.empty(0); v = z.view(-1); torch.add(x, 1, out=z);"
        " return z, v, z.shape",
        ["A(2, 3)"] * 3,
        2,
    ),
    "what may be the operand": Case(
        "y = [x.contiguous(), x.float(), x.flatten(), x.reshape(-1), x.conj(),"
        " torch.atleast_1d(x), torch.as_tensor(x), x.cpu(), F.dropout(x, 0.5, False),"
        " x.expand_as(x), x.squeeze(), +x, x.detach(), x.data, torch.real(x)];"
        " return y, [item is x for item in y]",
        twice("A(4)", "A(4, dtype=torch.float64)", "A(8)[::2]", "A(1, 4)"),
        4,
    ),
    "writes to what may be the operand": Case(
        "x.contiguous().add_(1); x.float().mul_(2); x.flatten()[0] = 9;"
        " x.reshape(-1)[1] = 8; x.ravel().neg_(); return x * 2",
        twice("A(4)", "A(4, dtype=torch.float64)", "A(8)[::2]"),
        3,
    ),
    "results with named parts": Case(
        "return torch.max(x, 1), torch.sort(x), x.topk(2), torch.aminmax(x),"
        " torch.std_mean(x), torch.frexp(x), x.cummax(0)",
        ["A(2, 3)", "A(2, 3)", "-A(2, 3)"],
        2,
    ),
    "one tensor twice": Case(
        "x.add_(1); v.mul_(2); return x + v, x is v",
        twice("B, B", "A(3), A(3)", "B, B[:]", "B[:2], B[1:]", "B, B"),
        5,
        "B = A(3)",
    ),
    "rates of dropout": Case(
        "y = F.dropout(x, v, True); z = y is x; y.add_(1); return y, z, x * 2",
        [f"A(4), {p}" for p in (0.5, 0.4, 0.3, 0.2, 0.0, 0.0, 0.0, 1.0, 1.0)],
        2,
    ),
    "a table that is normed where it is read": Case(
        "return F.embedding(x, W, max_norm=1.0), W.sum()",
        [
            *("torch.tensor([0, 1])", "torch.tensor([1, 2])", "torch.tensor([3, 3])"),
            "W.mul_(9) | torch.tensor([0, 1])",
        ],
        3,
        "W = A(5, 3)",
    ),
    "indices out of range behind a write": Case(
        "x.add_(1); return x[v], x.gather(0, v)",
        [f"A(5), torch.tensor({i})" for i in ([0, 1], [4, 2], [0, 5], [-1, 0], [3, 1])],
        3,
    ),
    "modes of batch norm": Case(
        "return M(x)",
        [
            *("A(4, 3)", "A(4, 3)", "M.eval() | A(4, 3)", "A(4, 3)"),
            "M.train(); M.momentum = None | A(4, 3)",
            *("A(4, 3)", "M.reset_running_stats() | A(4, 3)"),
            "M.track_running_stats = False | A(4, 3)",
        ],
        2,
        "M = nn.BatchNorm1d(3)",
    ),
    "a weight with its norm apart": Case(
        "return M(x), M.weight",
        [
            *("A(2, 3)", "A(2, 3)"),
            "parametrize.register_parametrization(M, 'weight', nn.Tanh()) | A(2, 3)",
            *("A(2, 3)", "M.parametrizations.weight.original.data.mul_(2) | A(2, 3)"),
            "parametrize.remove_parametrizations(M, 'weight') | A(2, 3)",
            "A(2, 3)",
        ],
        4,
        "M = nn.Linear(3, 3)",
    ),
    "hooks that come and go": Case(
        "return M(x) + 1",
        [
            *("A(2, 3)", "A(2, 3)"),
            "H.append(M.register_forward_hook(after)) | A(2, 3)",
            "A(2, 3)",
            "H.append(M[0].register_forward_pre_hook(before)) | A(2, 3)",
            *("A(2, 3)", "H.pop().remove() | A(2, 3)", "A(2, 3)"),
            "H.pop().remove() | A(2, 3)",
        ],
        4,
        "torch.utils.hooks.RemovableHandle.next_id = 0\n"
        "M = nn.Sequential(nn.Linear(3, 3), nn.ReLU())\nH = []\nL = []\n"
        "def after(m, args, out):\n    L.append('after')\n    return out * 2\n"
        "def before(m, args):\n    L.append('before')\n    return (args[0] + 1,)\n",
    ),
    "a module called with other parameters": Case(
        "return torch.func.functional_call(M, v, (x,)), M(x)",
        [
            *(
                f"A(2, 3), {{n: p * {k} for n, p in M.named_parameters()}}"
                for k in "12"
            ),
            "A(2, 3), {}",
            "A(2, 3), dict(weight=A(3, 3))",
        ],
        1,
        "M = nn.Linear(3, 3).requires_grad_(False)",
    ),
    "a parameter of another memory": Case(
        "return M(x) * 2",
        [
            *("A(2, 3)", "A(2, 3)", "M.weight = nn.Parameter(A(3, 3)) | A(2, 3)"),
            "M.weight.data = M.weight.data * 2 | A(2, 3)",
            "M.weight.data = M.weight.data.t() | A(2, 3)",
            "M.weight.data = M.weight.data.contiguous() | A(2, 3)",
            "M.weight.requires_grad_(False) | A(2, 3)",
            "M.weight.set_(torch.ones(3, 3)) | A(2, 3)",
            "N[0, 0] = 5 | A(2, 3)",
            "M.bias = None | A(2, 3)",
        ],
        4,
        "M = nn.Linear(3, 3)\nN = M.weight.detach().numpy()",
    ),
    "channels that come last": Case(
        "y = M(x); return y, x + 1, y.flatten(1), x.is_contiguous(memory_format=L)",
        [
            *twice("A(2, 3, 4, 4)", "A(2, 3, 4, 4).to(memory_format=L)"),
            *twice("A(2, 1, 4, 4)[:, [0, 0, 0]]", "A(1, 3, 4, 4).to(memory_format=L)"),
            "M.to(memory_format=L) | A(2, 3, 4, 4)",
            "A(2, 3, 4, 4)",
        ],
        4,
        "M = nn.Conv2d(3, 4, 3).requires_grad_(False)\nL = torch.channels_last",
    ),
    "no elements": Case(
        "return x * 2, x.sum(0), x.mean(), torch.cat([x, x]), x.softmax(-1), x[:1],"
        " x.prod(), x.all(), x.flip(0)",
        twice("A(3, 4)", "A(0, 4)", "A(5, 4)", "A(0, 4)", "A(1, 4)"),
        5,
    ),
    "an index of no dimension": Case(
        "x[v] = 5.0; x[v].add_(1); y = x[v]; y.mul_(2); return x[None], y, x[True]",
        [f"A(4), torch.tensor({i})" for i in (1, 1, 2, -1, 0, 7, 2)],
        4,
    ),
    "default types": Case(
        "return torch.tensor(1.5), torch.ones(2), x / 2, torch.get_default_dtype()",
        [
            *("A(3, dtype=torch.int64)", "A(3, dtype=torch.int64)"),
            "torch.set_default_dtype(torch.float64) | A(3, dtype=torch.int64)",
            "A(3, dtype=torch.int64)",
            "torch.set_default_dtype(torch.float32) | A(3, dtype=torch.int64)",
        ],
        2,
    ),
    "default devices": Case(
        "return torch.ones(3), torch.empty(2).device, x * 2",
        [
            *("C", "C", "torch.set_default_device('meta') | C", "C"),
            *("torch.set_default_device('cpu') | C", "C"),
            *("torch.set_default_device(None) | C", "C"),
        ],
        2,
        "C = torch.ones(3)",
    ),
    "seeds": Case(
        "torch.manual_seed(v); return torch.rand(3) + x, torch.rand(1)",
        [f"A(3), {seed}" for seed in (1, 1, 2, 3, 3)],
        0,
    ),
    "generators": Case(
        "return torch.rand(3, generator=v), torch.randperm(4, generator=v), x * 2",
        [
            *("A(3), G.manual_seed(3)", "A(3), G", "A(3), H.manual_seed(3)"),
            *("A(3), None", "A(3), None", "A(3), G"),
        ],
        1,
        "G, H = torch.Generator(), torch.Generator()",
    ),
    "weights that change within a region of autocast": Case(
        "\n    with torch.autocast('cpu', torch.bfloat16):\n"
        "        a = M(x); M.weight.mul_(2); return a, M(x), x.exp()",
        ["A(2, 3)", "A(2, 3)", "M.weight.data = A(3, 3) | A(2, 3)"],
        2,
        "M = nn.Linear(3, 3).requires_grad_(False)",
    ),
    "gradient modes by argument": Case(
        "\n    with torch.set_grad_enabled(v):\n        y = x * W\n"
        "    with torch.no_grad():\n        z = y * W\n"
        "    with torch.enable_grad():\n        return y, z, z * W",
        twice("A(3), True", "A(3), False"),
        2,
        "W = nn.Parameter(torch.ones(3))",
    ),
    "leaves that are made": Case(
        "y = (x * 2).detach().requires_grad_() if v else x.requires_grad_();"
        " return y, (y * 3).exp(), x.requires_grad",
        twice("A(3), True", "A(3), False", "A(3), True"),
        3,
    ),
    "forms of inputs": Case(
        "v(x); return x * 2, x.shape, x.stride()",
        [
            f"A(2, 3), lambda x: {how}"
            for how in (
                *("x.t_()", "x.t_()", "x.squeeze_()", "x.resize_(2, 2)", "x.detach_()"),
                *("x.set_(torch.ones(2))", "x.unsqueeze_(0)", "x.swapaxes_(0, 1)"),
            )
        ],
        0,
    ),
    "tensors that are swapped": Case(
        "tried(torch.utils.swap_tensors, x, v); return x * 2, v",
        ["A(3), A(2)"] * 3,
        0,
    ),
    "nodes of trees": Case(
        "y = pytree.tree_map(lambda t: t * 2, x); return y.a, y.b, len(vars(x))",
        twice("Pair(A(3), A(2))", "Pair(A(2), A(2))"),
        2,
        "class Pair:\n    def __init__(self, a, b): self.a, self.b = a, b\n"
        "pytree.register_pytree_node(\n"
        "    Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))",
    ),
    "subclasses behind plain tensors": Case(
        "return (x * 2).as_subclass(torch.Tensor), type(x + 1).__name__",
        twice("A(3)", "A(3).as_subclass(Sub)", "nn.Parameter(A(3))", "A(3)"),
        3,
        "class Sub(torch.Tensor): pass",
    ),
    "memory of numpy": Case(
        "t = torch.from_numpy(v); t.mul_(2); return t * x",
        twice(
            "A(3), np.arange(3, dtype=np.float32)", "A(3), np.ones(3, dtype=np.float32)"
        ),
        0,
    ),
    "complex numbers": Case(
        "torch.view_as_real(x).mul_(2); x.real.add_(1); y = x.conj();"
        " return y.imag, y.is_conj(), y.imag.is_neg(), x @ x, x.abs()",
        twice(
            "torch.complex(A(2, 2), A(2, 2))",
            "torch.complex(A(2, 2), A(2, 2)).conj()",
            "torch.complex(A(2, 2), A(2, 2)).t()",
        ),
        2,
    ),
    "lazy bits": Case(
        "return x * 2, x.is_neg(), x.is_conj(), x.clone()",
        twice("A(3)", "C.conj().imag", "C.imag", "C", "C.conj()"),
        5,
        "C = torch.complex(A(3), A(3))",
    ),
    "bits of floats": Case(
        "x.view(torch.int32).bitwise_and_(-2); return x * 2, x.view(torch.uint8)",
        ["A(4)", "A(4)", "A(2, 4)[1]", "A(9)[1:5]"],
        3,
    ),
    "parts of memory": Case(
        "x.t()[0].add_(1); x.diagonal().fill_(0); x[:, ::2] *= 2; x.unfold(0, 2, 2)"
        "[0].sub_(1); x[x > 6] = -1; x[1, 2:] = x[0, :2]; x.flip(0).zero_();"
        " x.unsqueeze(0).expand(1, 4, 4)[0, 3] = 4; return x * 1, x[1:], x.t()",
        twice("A(4, 4)", "A(6, 6)[1:5, 1:5]", "A(4, 4).t()", "A(4, 8)[:, ::2]"),
        4,
    ),
    "a branch that gives the input itself": Case(
        "y = x if x.sum() > 0 else x * 2; y.add_(1); return y, x * 1",
        [f"A(3) * {k}" for k in (1, -1, 1, -1, -2, 3)],
        3,
    ),
    "views on both sides of a break": Case(
        "y = x[1:]; z = x * 2; v = z[:1]; zlib.crc32(b'a break'); y.add_(1);"
        " v.mul_(5); return x, z, y, v",
        ["A(3)", "A(3)", "A(6)[::2]", "A(3)"],
        2,
    ),
    "layers that learn their size": Case(
        "return M(x)",
        ["A(4, 5)"] * 4,
        2,
        "M = nn.Sequential(nn.LazyLinear(3), nn.ReLU())",
    ),
    "buffers that show each other": Case(
        "M.a[M.n % 4] = x; M.b.mul_(0.5); M.n += 1; M.last = M.a[: M.n]; return M.last",
        ["A(3)"] * 4 + ["M.b = M.b.clone() | A(3)", "A(3)", "M.b = M.a[1:] | A(3)"],
        1,
        "M = nn.Module()\nM.a = torch.zeros(4, 3); M.b = M.a[1:]; M.n = 0",
    ),
    "an error that is caught behind a write": Case(
        "\n    x.add_(0.0)\n    try:\n        return torch.linalg.cholesky(x), x\n"
        "    except RuntimeError:\n        return x * 0, x",
        [
            f"torch.diag(torch.tensor({d}))"
            for d in ([2.0, 3.0], [1.0, 9.0], [-1.0, 2.0])
        ]
        * 2,
        3,
    ),
    "copies of tensors": Case(
        "import copy; a, b = copy.copy(x), copy.deepcopy(x); a.add_(1);"
        " return a, b, x.clone(), torch.clone(x).stride()",
        twice("A(3, 2)", "A(2, 3).t()"),
        0,
    ),
    "sizes that change, and views": Case(
        "return x[1:], x.t(), (x * 2)[:, 1:], x.view(-1)[2:4], x.shape[0] * x",
        [
            f"A(40)[{offset}:][: {count} * 3].view({count}, 3)"
            for count, offset in (
                (3, 0),
                (4, 0),
                (5, 0),
                (6, 4),
                (7, 1),
                (7, 0),
                (5, 3),
            )
        ],
        2,
    ),
}


@pytest.fixture(autouse=True)
def defaults():
    """Put back what programs set for the process."""
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_calls_are_those_of_the_twin(name, beside_twin):
    case = CASES[name]
    setup = IMPORTS + case.setup
    difference, traced = beside_twin(setup, case.program, case.calls)
    assert difference is None, f"{difference}\n{traced.explain()}"
    assert traced.stats()["hits"] >= case.hits, traced.explain(recompiles=True)
