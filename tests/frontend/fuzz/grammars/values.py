"""Owns the grammar of values: numbers of all kinds, shared memory, attributes, draws.

Types: T a tensor of four elements, K a number, B a bool, Z a string, N a list of
numbers, A an object.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ..grammar import Grammar, Parameter, paragraphs, templates
from ..worlds.values import WORLD

_T = """
    {t} * {K}
    {t} + {K}
    {K} - {t}
    {t} / {K}
    {t} // {K}
    {t} ** 2
    {t} % {K}
    {t} + {t}
    {t} * {t}
    {t} - {T}
    {t}[:]
    {t}.view(-1)
    {t}.view(4)
    {t}.reshape(2, 2).t().reshape(4)
    {t}.flip(0)
    {t}.detach()
    {t}.clone()
    {t}.contiguous()
    {t}.abs()
    {t}.float()
    {t}.to({t}.dtype)
    {t}.to(torch.float64)
    {t}.data
    {t}.requires_grad_(False)
    {t}.fill_diagonal_(1) if {t}.dim() == 2 else {t}
    torch.full((4,), {K})
    torch.tensor({K})
    torch.tensor([{K}, {K}, 0, 1])
    torch.where({t} > {K}, {t}, {K})
    torch.clamp({t}, min={K})
    torch.add({t}, {t}, alpha={K})
    torch.cat([{t}[:2], {t}[2:]])
    torch.stack([{t}, {t}]).sum(0)
    torch.as_tensor(ARRAY)
    torch.from_numpy(ARRAY) * {K}
    torch.arange({K} % 5)
    BASE
    HEAD
    TAIL
    MIDDLE
    EVEN
    GRID[0]
    GRID[1]
    GRID.t()[0]
    WHOLE
    LOSS
    {A}.t
    CELL({t})
    CELL.seen
    CELL.weight
    {A}.run({t})
    keep({t})
    torch.rand(4)
    torch.rand(4, generator=_SEEDED)
    torch.randperm(4)
    torch.bernoulli({t}.float().sigmoid())
    F.dropout({t}, 0.5, {B})
    {t}.new_empty(4).uniform_()
    {t}.is_floating_point() and {t} or {t} + 0.5
    ({t} if {B} else {t})
    {t}.masked_fill({t} > 1, {K})
    {t}.index_fill(0, torch.tensor([1]), {K})
    {t}.unsqueeze(0).expand(2, 4)[1]
    {t}[torch.tensor([0, 1, 1, 3])]
    {t}[[3, 2, 1, 0]]
    {t}.pow({K})
    {t}.bool()
    {t}.eq({K})
    {t}.type_as({t})
    {t}.nan_to_num({K})
"""
_K = """
    k
    k
    j
    k + j
    {k} + 1
    {k} * 2
    {k} - {k}
    {k} * {k}
    {k} / 2
    {k} // 2
    {k} % 3
    {k} ** 2
    -{k}
    abs({k})
    +{k}
    round({k})
    round({k}, 1)
    int({k})
    float({k})
    bool({k})
    complex({k}).real
    divmod({k}, 2)[1]
    max({k}, 1)
    max(1.0, {k})
    min({k}, {k})
    sum([{k}, 1.0])
    math.sqrt(abs({k}))
    math.floor({k})
    math.copysign(1, {k})
    math.isnan({k})
    math.fmod({k}, 2)
    operator.add({k}, 1)
    ({k} if {B} else 1)
    ({k} or 2)
    ({k} and 3)
    (not {k})
    ~int(k)
    int(k) << 2
    int(k) & 7
    int(k) ^ int(j)
    hash(str({k}) == "1")
    len(str({k}))
    VALUES.get({k}, 0)
    VALUES["b"]
    {{1: 5, 0.5: 6}}.get({k}, 7)
    [4, 5][bool({k})]
    {N}[0]
    {N}[-1]
    {N}.count({k})
    FACTOR
    BIG
    BIG + 1
    COUNT
    {A}.v
    {A}.w
    {A}.twice
    {A}.cached
    {A}.size
    getattr({A}, "extra", 2)
    getattr(S, "b", 0.25)
    S.a
    BAD.vvv
    GET()
    ADD(1)
    check({k})
    inverse({k})
    {t}.shape[0]
    {t}.numel()
    {t}.stride(0)
    {t}.storage_offset()
    {t}.dim()
    {t}.sum().item()
    int({t}[0])
    float(ARRAY[1])
    ARRAY[0]
    ARRAY.sum()
    random.random()
    random.randint(0, 3)
    random.choice([1, 2.5])
    random.gauss(0, 1)
    _DICE.random()
    numpy.random.rand()
    numpy.random.randint(3)
    _ROLLS.rand()
    numpy.float32({k})
    next(_RUNNING, 0.5)
    float.fromhex("0x1.8p1")
    int("12")
    {k}.__add__(1)
    torch.finfo(torch.float32).eps
"""
_B = """
    {k} > 1
    {k} == 1
    {k} != {k}
    {k} is True
    {k} is j
    {k} == 0
    0 <= {k} < 3
    isinstance({k}, int)
    isinstance({k}, bool)
    isinstance({k}, float)
    type({k}) is int
    {k} in {N}
    {k} in VALUES
    {k} < float("inf")
    bool({k})
    not {k}
    {t} is x
    {t}.data_ptr() == x.data_ptr()
    {t}.is_contiguous()
    {t}.requires_grad
    {t}.dtype is torch.float32
    {t}.dtype.is_floating_point
    torch.is_grad_enabled()
    torch.is_tensor({k})
    CELL.training
    {A} is P
    {A} == Q
    {A} < Q
    hasattr({A}, "extra")
    hasattr(S, "b")
    hasattr(BAD, "x")
    "t" in vars({A})
    list(vars({A}))[0] == "v"
    {t}.sum() > 0
    {t}.sum() > {k}
    bool((BASE > {k}).any())
    torch.equal({t}, {t})
    random.random() < 0.5
    {Z} == "3"
    any({N})
    {N} == [1, 2.0]
    {N} is {A}.items
    math.isclose({k}, 1.0)
    {k}.is_integer()
    LOSS.grad is None
    {t}._version > 2
    {t}.is_leaf
"""
_Z = """
    str({k})
    f"{{{k}}}"
    repr({k})
    "%s" % ({k},)
    NAMES[0]
    {A}.kind
    type({k}).__name__
    str({t}.dtype)
    ",".join(vars({A}))
    ",".join(map(str, VALUES))
"""
_N = """
    [{k}, 1]
    [{k}, {k}]
    {A}.items
    {A}.items[:]
    list(VALUES.values())
    sorted([{k}, 1, 0.5])
    [v * 2 for v in {A}.items]
    list(range(int(k) % 4))
    list(itertools.accumulate([{k}, 1, 2]))
    [*count_up(1)]
    {t}.tolist()
    [{k}] * 2
"""
_STATEMENTS = """
    {=T} = {T}
    {=T} = {T}
    {=T} = {T}
    t = {T}
    t = {T}
    s = {T}
    {t} = {T}
    {=K} = {K}
    {=K} = {K}
    {=K} = {K}
    k = {K}
    j = {K}
    {k} += {K}
    {k} *= 2
    {=N} = {N}
    {=A} = Part({K})
    {=A} = {A}
    {t}.add_({K})
    {t}.mul_({K})
    {t}[0] = {K}
    {t}[1:].add_(1)
    {t}[{t} > 1] = {K}
    {t} += {T}
    {t} *= {K}
    {t}.copy_({T})
    {t}.fill_({K})
    {t}.view(2, 2)[0].add_(1)
    torch.add({t}, {K}, out={t})
    BASE.add_({K})
    BASE[3] = {K}
    HEAD.mul_(2)
    TAIL.copy_(HEAD)
    MIDDLE.add_(HEAD * 1)
    HEAD.add_(MIDDLE * 1)
    EVEN.zero_()
    GRID[0].add_(GRID[1])
    GRID.t()[1].fill_({K})
    CELL.seen.add_(1)
    CELL.seen = {T}
    CELL.steps.add_(1)
    LOSS.data.add_(1)
    {A}.t = {T}
    {A}.t.add_({K})
    {A}.v = {K}
    {A}.v += 1
    {A}.twice = {K}
    {A}.extra = {K}
    del {A}.twice
    {A}.__dict__["w"] = {K}
    {A}.__dict__.pop("extra", None)
    if hasattr({A}, "extra"): del {A}.extra
    if "w" in P.__dict__: del P.w; P.w = {K}
    {A}.__dict__.update(v={K}, z=1)
    S.b = {K}
    S.more = {K}
    if hasattr(S, "b"): del S.b
    {A}.items.append({K})
    {A}.items[0] = {K}
    if 1 in P.items: P.items.remove(1)
    VALUES[{K}] = {K}
    VALUES["a"] = VALUES.pop("a", 0)
    VALUES.pop({K}, None)
    NAMES[0] = {Z}
    LOG.append({K})
    LOG.append({T})
    LOG.append({Z})
    LOG.append({t})
    COUNT += 1
    COUNT = {K}
    FACTOR = {K}
    HEAD = {T}
    ADD({K})
    ARRAY[0] = {K}
    ARRAY += 1
    _SEEDED.manual_seed(3)
    random.seed(4)
    torch.manual_seed(4)
    {t}.note = {K}
    if {t}.is_leaf and {t}.is_floating_point(): {t}.requires_grad_()
    next(_RUNNING, None)
    assert {B} or {k} == {k}, {Z}
    s = t; del t; t = s + 0
    if {B}: {k} = {K}
    if {B}: {t} = {T}
    if {B} and k == 2: raise KeyError({Z})
"""
_COMPOUND = """
    if {B}:
        {*}

    if {B}:
        {*}
    else:
        {*}

    if {B}:
        {*}
    elif {B}:
        {*}

    for {=K} in [*{N}]:
        {*}

    for {=K} in range(int(k) % 4):
        {*}

    for {=K} in count_up({K}):
        {*}

    for {=K} in {t}:
        {*}

    try:
        {*}
        check({K})
    except ValueError as error:
        LOG.append(str(error))
        {*}

    try:
        check({K})
    except (ValueError, ArithmeticError):
        {*}
    else:
        {*}

    try:
        {=K} = 1 / {K}
    except ZeroDivisionError:
        {k} = 1
    finally:
        {*}

    try:
        {=K} = VALUES[{K}]
    except KeyError as error:
        {k} = error.args[0]

    try:
        {=K} = {N}[2]
    except IndexError:
        {k} = 0
        {*}

    try:
        {=K} = BAD.value + 1
    except (ValueError, AttributeError) as error:
        {k} = 2
        {*}

    try:
        {=K} = {A}.absent
    except AttributeError:
        {k} = 3
        {*}
    finally:
        {*}

    try:
        {*}
        if {B}:
            raise KeyError({K})
    except KeyError as error:
        {*}

    with torch.no_grad():
        {*}

    with torch.set_grad_enabled(bool({B})):
        {*}

    with torch.inference_mode(bool({B})):
        {*}

    def local(a, b={K}):
        {*}
        return a * b
    {=T} = local({T})

    def local(a, b):
        nonlocal k
        k = b
        {*}
        return a + k
    {=T} = local({T}, {K})

    def local(a, b=[]):
        b.append({K})
        return a + len(b)
    {=T} = local({T}) + local({T})

    class Local(Part):
        size = {K}
        w = {K}
    {=K} = Local.size
    {=A} = Local({K})
"""
_INTS = "0 1 2 3 -1 -7 255 2**31 2**53 2**53+1 2**63-1 2**63 -2**63-1 10**30".split()
_FLOATS = "0.0 -0.0 1.0 0.1 2.5 -1.5 1e300 5e-324 3.0 1e16".split()
_ODD = (
    'float("nan") float("inf") -float("inf") True False BIG numpy.float64(0.5)'.split()
)
_SMALL = "0 1 2 3 4 5 -1".split()
_HALVES = "0.5 1.5 2.0 1.0 -0.5 0.0 2.25".split()
_POOLS = (
    _SMALL,
    _SMALL,
    _HALVES,
    _HALVES,
    _INTS,
    _FLOATS,
    ["True", "False"],
    ["1", "1.0", "True", "0", "0.0", "False", "-0.0"],
    [*_INTS, *_FLOATS, *_ODD],
)
_PLAIN = ["torch.randn(4)"] * 5
_FORMS = [
    *_PLAIN,
    "torch.randn(8)[::2]",
    "torch.randn(8)[2:6]",
    "torch.randn(4).requires_grad_()",
    "torch.randn(4, dtype=torch.float64)",
    "torch.randn(4).to(torch.bfloat16)",
    "torch.arange(4)",
    "torch.tensor([True, False, True, True])",
    "torch.randn(4, 2)[:, 1]",
    'torch.tensor([float("nan"), float("inf"), -0.0, 1.0])',
    "torch.full((1,), 2.0)",
    "torch.zeros(4)",
    "torch.randn(2, 4)",
    "nn.Parameter(torch.ones(4))",
]
_SHARED = (
    "BASE HEAD TAIL MIDDLE EVEN GRID[0] WHOLE LOSS P.t CELL.seen BASE[1:5]".split()
)
_OF_X = [
    *["x", "x[:]", "x.detach()", "x.view_as(x)", "x.clone()", "x * 1"],
    "x.reshape(-1)[1:]",
]


def drift(
    chooser: random.Random, arguments: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield arguments with another number in each call, now and then another tensor."""
    x, y, _, j, item = arguments
    pool = chooser.choice(_POOLS)
    both = chooser.random() < 0.3
    for _ in range(chooser.randint(6, 9)):
        k = chooser.choice(pool)
        j = chooser.choice(pool) if both else j
        if chooser.random() < 0.1:
            x = chooser.choice(_FORMS)
        if chooser.random() < 0.1:
            y = chooser.choice(_OF_X)
        yield (x, y, k, j, item)


VALUES = Grammar(
    name="values",
    world=WORLD,
    parameters=(
        Parameter("x", [*_PLAIN, *_FORMS, *_SHARED], [*_FORMS, *_SHARED], 3),
        Parameter(
            "y", [*_PLAIN, *_OF_X, *_SHARED], [*_FORMS, *_OF_X, *_OF_X, *_SHARED], 3
        ),
        Parameter("k", _SMALL + _HALVES, [*_INTS, *_FLOATS, *_ODD], 2),
        Parameter("j", _SMALL + _HALVES, [*_INTS, *_FLOATS, *_ODD]),
        Parameter("o", ["P", "P", "Q", "Part(k)"], ["P", "Q", "Part(1)", "S"]),
    ),
    variables={"T": ["x", "y", "t", "s"], "K": ["k", "j"], "A": ["o"]},
    inner={"a": "T", "b": "K"},
    declared="global COUNT, FACTOR, HEAD, ARRAY",
    prologue=(
        ("t, s = x, y", "t, s = x + 1, y", "t, s = x, HEAD"),
        ("t = {T}", "s = {T}", "pass"),
    ),
    expressions={
        "T": templates(_T),
        "K": templates(_K),
        "B": templates(_B),
        "Z": templates(_Z),
        "N": templates(_N),
        "A": ["P", "P", "Q", "o", "(P if {B} else Q)"],
    },
    fallback={
        "T": "x",
        "K": "k",
        "A": "P",
        "N": "o.items",
        "Z": "str(k)",
        "B": "k > 1",
    },
    statements=templates(_STATEMENTS),
    compound=paragraphs(_COMPOUND),
    results=(
        "t, s, k",
        "t, s, k, j",
        "({T}, {K}, {Z})",
        "{T}",
        "{T}, t, t[:2]",
        "[{t}, {t}], {K}",
        "{{'t': {t}, 'k': {K}, 'n': {N}}}",
        "({B}, {K}, {K}, {T})",
        "{A}, t",
        "(x, y, BASE[:2], t)",
        "(lambda v: v * {k}), t",
        "{t}.view(-1)[:2], {t}",
        "{N}, {T}, GET()",
    ),
    changes=[
        "BASE.add_(1)",
        "BASE = BASE.clone()",
        "HEAD = BASE[1:5]",
        "HEAD = HEAD.clone()",
        "TAIL = HEAD",
        "MIDDLE = x = BASE[3:7]",
        "HEAD = BASE[:4].double()",
        "P.t = Q.t",
        "P.t = torch.randn(4)",
        "P.t = BASE[{I}:{I} + 4]",
        "CELL.seen = torch.zeros(4)",
        "CELL.seen = BASE[4:]",
        "CELL.eval()",
        "CELL.train()",
        "CELL.weight.requires_grad_(False)",
        "CELL.weight.grad = None",
        "LOSS.grad = None",
        "LOSS = LOSS.detach()",
        "LOSS.data = torch.zeros(4)",
        "P.v = {K}",
        "P.v = {K}",
        "P.w = {K}",
        "P.w = 1; del P.w; P.w = {K}",
        "P.extra = {K}",
        "P.__dict__.pop('cached', None)",
        "P.__dict__ = dict(reversed(P.__dict__.items()))",
        "P, Q = Q, P",
        "Q = P",
        "P.items = Q.items",
        "P.items = [{K}, {K}, {K}]",
        "P.twice = {K}",
        "Part.twice = {K}",
        "Part.size = {K}",
        "P.size = {K}",
        "Part.kind = 'b'",
        "Part.__lt__ = lambda self, other: True",
        "Part.extra = {K}",
        "Part.run.__defaults__[0].clear()",
        "Part.run.__defaults__ = ([2.0],)",
        "keep.__defaults__[0].clear()",
        "keep.__defaults__ = ([1, 2], dict(a=1))",
        "S = Slots(); S.a = {K}",
        "S.b = {K}",
        "S.a = {K}",
        "del S.b",
        "Failing.value = {K}",
        "del Failing.__getattr__",
        "FACTOR = {K}",
        "BIG = 2**64",
        "COUNT = {K}",
        "VALUES[{K}] = {K}",
        "VALUES = dict(reversed(VALUES.items()))",
        "VALUES['b'] = {K}",
        "NAMES = ['b', 'a']",
        "ARRAY[1] = {K}",
        "ARRAY = ARRAY.astype('float32')",
        "ARRAY = numpy.arange(8.0)[::2]",
        "ADD(1)",
        "ADD.__closure__[0].cell_contents = {K}",
        "ADD, GET = counter()",
        "_RUNNING = count_up({K})",
        "next(_RUNNING, None)",
        "_DICE.seed({I})",
        "_SEEDED.manual_seed({I})",
        "_ROLLS = numpy.random.RandomState({I})",
        "random.random()",
        "torch.rand(1)",
        "check = lambda k: k",
        "check.__code__ = (lambda k: 1 // k).__code__",
        "inverse = abs",
        "LOG.clear()",
        "del FACTOR",
        "BIG = 5",
        "WHOLE.add_(1)",
        "WHOLE = WHOLE.int()",
    ],
    literals={"K": [*_SMALL, *_HALVES, *_FLOATS, *_ODD[:5]], "I": "0 1 2 3".split()},
    drift=drift,
    drifting=0.4,
    flipping=0.06,
    functions=(1, 1, 1, 2),
    dynamic=("auto", "auto", {"k": True}),
    branching=0.25,
)
