"""Owns the grammar of data: arrays and lists that change, effects before a truth.

Types: T a tensor of four elements, X an array of four, N a list of four numbers, K a
number, B a condition, mostly of a tensor, G an iterator over numbers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ..grammar import Grammar, Parameter, paragraphs, templates
from ..worlds.data import WORLD

_T = """
    torch.from_numpy({x})
    torch.from_numpy({x})
    torch.from_numpy({x})
    torch.from_numpy({X})
    torch.tensor({x})
    torch.tensor({X})
    torch.as_tensor({x})
    torch.as_tensor({X})
    torch.as_tensor({x}, dtype=torch.float32)
    torch.tensor({x}, dtype=torch.float64)
    torch.as_tensor({N}, dtype=torch.float64)
    torch.tensor({n})
    torch.tensor({n})
    torch.tensor({N})
    torch.tensor({N}, dtype=torch.float32)
    torch.tensor([{n}, {n}])[0]
    torch.tensor([{n}, {N}]).sum(0)
    torch.tensor([{n}, {x}]).sum(0)
    torch.tensor([[{n}]])[0, 0]
    torch.FloatTensor({n})
    torch.Tensor({n})
    torch.Tensor({x})
    torch.LongTensor({n})
    torch.asarray({x})
    batch([{n}, {n}])[1]
    batch({n})
    torch.tensor([{K}, {K}, 0, 1])
    torch.tensor({K}) + {t}
    {t}.new_tensor({n})
    {t}.new_tensor({x})
    {t}[{x}]
    {t}[{x} > 1].sum() + {t}
    {t}[[3, 2, 1, 0]]
    {t}[torch.tensor({n}).long() % 4]
    {t} * {K}
    {t} + {K}
    {t} - {T}
    {t} * {t}
    {t} + {x}
    {t} / ({K} * {K} + 1)
    {t}.clone()
    {t}.detach()
    {t}[:]
    {t}.view(2, 2).t().reshape(4)
    {t}.flip(0)
    {t}.abs()
    {t}.float()
    {t}.double()
    {t}.to({t}.dtype)
    {t}.tanh()
    torch.cat([{t}[:2], {t}[2:]])
    torch.stack([{t}, {t}]).sum(0)
    torch.where({t} > {K}, {t}, {K})
    torch.full((4,), {K})
    torch.rand(4)
    torch.rand(4, generator=_SEEDED)
    F.dropout({t}.float(), 0.5)
    _Doubled.apply({t}.float())
    NET({t})
    gated({t})
    gated({t})
    checked({t})
    SHARED
    HEAD
    BUF[2:6]
    PARAM
    PARAM * {t}
    BOX.t
    ({t} if {B} else {t} + 1)
"""
_X = """
    {x} * 2
    {x} + {x}
    {x} / 2
    {x}.copy()
    {x}[:]
    {x}[::-1]
    {x}[::-1].copy()
    {x}.astype("float32")
    {x}.astype("int64") % 4
    {x}.reshape(2, 2).T.reshape(4)
    {x}.clip(0, 2)
    numpy.array({N})
    numpy.asarray({n}, dtype="float32")
    numpy.stack([{x}, {x}])[0]
    numpy.where({x} > 1, {x}, 0)
    numpy.zeros(4, dtype="float32")
    {t}.detach().numpy()
    {t}.detach().numpy() + 1
    {t}.tolist() and {x}
    ARRAY
    BOX.array
    numpy.random.rand(4)
"""
_N = """
    l
    r
    l[:]
    [*{n}]
    {n}[::-1]
    [v * 2 for v in {n}]
    [v / 2 for v in {n}]
    [v + {K} for v in {n}]
    sorted({n})
    list(reversed({n}))
    list(map(float, {n}))
    list(map(operator.neg, {n}))
    tuple({n})
    list(dict(zip("abcd", {n})).values())
    list(Pair(*{n}[:2])) * 2
    {x}.tolist()
    {t}.tolist()
    BOX.items
    [{K}, {K}, 1, 2]
    {n}[:2] + {n}[2:]
    [max(v, 1) for v in {n}]
    [v for v in {n} if v > 1] + [0] * 4
    list(itertools.accumulate({n}))
    [a + b for a, b in zip({n}, {n})]
"""
_K = """
    k
    k
    {n}[0]
    {n}[1]
    {n}[-1]
    len({n})
    sum({n})
    max({n})
    min({n})
    {n}.count(1)
    {x}[0]
    {x}.sum()
    {x}.shape[0]
    {x}.size
    len({x})
    float({x}[1])
    int({x}.max())
    {x}.dtype.itemsize
    k + 1
    {k} * 2
    {k} - {k}
    {k} / 2
    max({k}, 1)
    abs({k})
    float({k})
    Pair({k}, 1).a
    Pair(a=2, b={k})[1]
    Pair({k}, 1)._replace(b={k}).b
    types.SimpleNamespace(v={k}).v
    dict(v={k})["v"]
    Made({k}).v
    Asked({k}).v
    Asked({k}).w
    isinstance(Made({k}), Some)
    BOX.v
    BOX.twice
    COUNT
    CACHE.get("k", 1)
    next({G})
    next(_RUNNING, 0.5)
    {t}.sum().item()
    {t}[0].item()
    {t}.shape[0]
    random.random()
    _DICE.random()
    numpy.random.rand()
    (1 if {B} else 2)
    ({k} if {B} else k)
"""
_B = """
    {t}.sum() > 0
    {t}.sum() > {K}
    {t}[0] > 1
    {t}[0] > {t}[1]
    ({t} > 1).any()
    bool(({t} > 0).all())
    {t}.sum() * 0.25 < 1
    {t}.abs().max() > 2
    torch.rand(()) < 0.7
    torch.rand(1) < 0.9
    torch.isclose({t}.sum().float(), torch.tensor(4.0))
    not {t}.any()
    torch.equal({t}, {t})
    {t}.sum().item() > 2
    {n}[0] > 1
    {n}[0] == 2
    {k} > 1
    {n} == {n}
    {n} is l
    {x} is a
    {x}[0] > 1
    {x}.sum() > 4
    {x}.dtype == numpy.float32
    ({x} == {x}).all()
    2 in {n}
    any({n})
    {t}.dtype is torch.float32
    {t}.requires_grad
    torch.is_grad_enabled()
    random.random() < 0.7
    isinstance({k}, float)
"""
_G = """
    iter({n})
    reversed({n})
    map(float, {n})
    (v + 1 for v in {n})
    iter(dict(zip("abcd", {n})).values())
    itertools.chain({n}, [1])
    filter(None, [*{n}, 1])
    zip(*[iter({n})]).__next__() and iter({n})
    count_up({k})
"""
_STATEMENTS = """
    {=T} = {T}
    {=T} = {T}
    {=T} = {T}
    t = {T}
    t = {T}
    {t} = {T}
    {=X} = {X}
    {=X} = {X}
    {=N} = {N}
    {=N} = {N}
    {=K} = {K}
    {=K} = {K}
    k = {K}
    {=G} = {G}
    {=G} = {G}
    {=K} = next({g}, 0)
    {=N} = [*{g}]
    {=K} = sum({g})
    {k} += {K}
    {t}.add_({K})
    {t}.mul_({K})
    {t}[0] = {K}
    {t}[1:].add_(1)
    {t}.copy_({T})
    {t} += {T}
    {x}[0] = {K}
    {x}[1:] = 2
    {x} += 1
    {x} *= 2
    {x}.fill({K})
    {x}.sort()
    {n}[0] = {K}
    {n}[1] += 1
    if len({n}) < 7: {n}.append({K})
    {n}.reverse()
    {n}.sort()
    {n}.pop()
    {n}[:] = {N}
    LOG.append({K})
    LOG.append({T})
    LOG.append({t})
    LOG.append({x})
    LOG.append({n})
    LOG.append({g})
    CACHE["t"] = {T}
    CACHE["k"] = {K}
    CACHE["n"] = {N}
    CACHE[{K}] = 1
    COUNT += 1
    BOX.v = {K}
    BOX.v += 1
    BOX.put({K})
    BOX.t = {T}
    BOX.items = {N}
    BOX.items[0] = {K}
    BOX.array = {X}
    BOX.array[1] = {K}
    BOX.t.add_({K})
    BUF.add_(1)
    HEAD.copy_({T})
    SHARED.mul_(2)
    ARRAY[0] = {K}
    NET.seen = {T}.float()
    NET.linear.bias.data.add_(1)
    PARAM.data.mul_(2)
    ({T} * PARAM).sum().backward()
    if {t}.is_leaf and {t}.is_floating_point(): {t}.requires_grad_()
    if {t}.requires_grad: {t}.register_hook(lambda g: LOG.append("hook"))
    random.random()
    numpy.random.rand()
    next(_RUNNING, None)
    torch.manual_seed(4)
    {t}.note = {K}
    assert {B} or {k} == {k}
    if {B}: {k} = {K}
    if {B}: {t} = {T}
    if {B}: return {T}, {K}
    if {B}: return {t}
    if {B}: raise KeyError({K})
    if {B}: LOG.append({K})
    if {B}: {t}.add_(1)
    if {B}: {x}[0] = 5
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
        return {T}

    LOG.append({K})
    if {B}:
        {*}
        return {T}, {N}

    {t}.add_(1)
    if {B}:
        {*}
        return {T}, {X}

    BOX.v += 1
    if {B}:
        CACHE["b"] = {T}
        return {T}, {k}

    for {=K} in {n}:
        {*}

    for {=K} in {n}:
        t = t + {k}

    for {=K} in {g}:
        {*}

    for {=K} in {g}:
        {*}
        if {B}:
            break

    for {=K} in range(4):
        t = t * 0.5 + {x}[{k}]
        if {B}:
            break

    for _ in range(3):
        {*}
        if {B}:
            break

    for {=K}, {=K} in enumerate({n}):
        t = t + {k} * {K}

    for {=K} in {x}:
        {*}

    while (t.abs() > 1).any():
        t = t.clamp(-9, 9) * 0.4
        LOG.append({K})

    while (t.abs() > 1).any() and len(LOG) < 20:
        LOG.append(1)
        t = t.clamp(-9, 9) * 0.4
        {*}

    try:
        {*}
        if {B}:
            raise ValueError({K})
        {*}
    except (ValueError, KeyError) as error:
        {*}

    try:
        {*}
        checked({T})
    except ValueError:
        {*}
    finally:
        LOG.append("end")

    try:
        {=K} = {n}[5]
    except IndexError:
        {*}

    with torch.no_grad():
        {*}

    with torch.autocast("cpu", torch.bfloat16):
        {*}

    with torch.inference_mode(bool({B})):
        {*}

    with doubled():
        {*}

    with noted({K}):
        {*}

    def local(a, b={K}):
        {*}
        if {B}:
            return a
        return a * b
    {=T} = local({T})

    def local(a, b):
        nonlocal k
        k = b
        {*}
        return a + k
    {=T} = local({T}, {K})

    def local(a, b):
        for v in b:
            {*}
            yield v
    {=G} = local({T}, {N})

    class Local(Box):
        size = {K}
    {=K} = Local({K}).put({K}).v + Local.size
"""
_ARRAYS = (
    *["numpy.array([{v}], dtype='float32')"] * 5,
    *["numpy.array([{v}])"] * 2,
    "numpy.array([{i}])",
    "numpy.array([{i}])",
    "numpy.array([{v}, {v}])[::2]",
    "numpy.array([{v}, {v}], dtype='float32').reshape(4, 2)[:, 1]",
    "numpy.array([{v}, {v}], dtype='float32')[2:6]",
    "numpy.array([{b}])",
    "numpy.array([{v}], dtype='float16')",
    "numpy.array([{i}], dtype='uint8')",
    "numpy.array([{v}], dtype='float32')[::-1]",
    "numpy.frombuffer(numpy.array([{v}]).tobytes())",
    "ARRAY",
    "BOX.array",
)
_LISTS = (
    *["[{v}]"] * 4,
    *["[{i}]"] * 4,
    "([{i}])",
    "tuple([{v}])",
    "[{v}, {v}][:5]",
    "[{b}]",
    "[{i}][:3] + [2.5]",
    "[True, {i}][:4]",
    "BOX.items",
    "[*BOX.items]",
)
_OF_A = ("a", "a", "a[:]", "a.copy()", "a[::-1]", "a.view()", "ARRAY", "a * 1")
_OF_L = ("l", "l", "l[:]", "[*l]", "BOX.items", "l[::-1]")
_TENSORS = (
    *["torch.randn(4)"] * 6,
    "torch.randn(4).requires_grad_()",
    "torch.randn(4, dtype=torch.float64)",
    "torch.randn(8)[::2]",
    "torch.arange(4)",
    "HEAD",
    "SHARED",
    "torch.from_numpy(a) if a.strides > (0,) else SHARED",
    "torch.zeros(4)",
    "PARAM",
)


def filled(chooser: random.Random, form: str) -> str:
    """Return the source of data with other numbers in it."""
    numbers = {
        "{v}": lambda: repr(round(chooser.uniform(-1, 3), 2)),
        "{i}": lambda: str(chooser.randint(0, 3)),
        "{b}": lambda: str(chooser.random() < 0.5),
    }
    for token, draw in numbers.items():
        while token in form:
            form = form.replace(token, ", ".join(draw() for _ in range(4)), 1)
    return form


def drift(
    chooser: random.Random, arguments: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield arguments with other data in each call, now and then of another form."""
    kinds: list[tuple[str, ...]] = [
        _ARRAYS,
        (*_ARRAYS, *_OF_A),
        _LISTS,
        (*_LISTS, *_OF_L),
        _TENSORS,
        ("2", "[{v}][0]", "[{v}][0]", "[{i}][0]", "[{i}][0]", "[{b}][0]"),
    ]
    forms = [chooser.choice(kind) for kind in kinds]
    forms[4] = chooser.choice((forms[4], "torch.randn(4)", "torch.randn(4)"))
    given = [filled(chooser, form) for form in forms]
    # Few of them change: each content of others has a record.
    varying = [n for n in range(6) if chooser.random() < 0.25]
    varying = varying or [chooser.randrange(6)]
    for _ in range(chooser.randint(8, 12)):
        for place in varying:
            if chooser.random() < 0.06:
                forms[place] = chooser.choice(kinds[place])
            if chooser.random() < 0.9:
                given[place] = filled(chooser, forms[place])
        yield tuple(given)


DATA = Grammar(
    name="data",
    world=WORLD,
    parameters=(
        Parameter("a", ["ARRAY"], ["ARRAY"]),
        Parameter("c", ["ARRAY"], ["ARRAY"]),
        Parameter("l", ["[1, 2, 3, 4]"], ["[1, 2, 3, 4]"]),
        Parameter("r", ["[1, 2, 3, 4]"], ["[1, 2, 3, 4]"]),
        Parameter("y", ["torch.randn(4)"], ["torch.randn(4)"]),
        Parameter("k", ["2"], ["2"]),
    ),
    variables={"T": ["y", "t", "s"], "X": ["a", "c"], "N": ["l", "r"], "K": ["k"]},
    inner={"a": "T", "b": "K"},
    declared="global COUNT",
    prologue=(
        ("t = y * 1", "t = torch.from_numpy(a)", "t = torch.tensor(a)", "t = y"),
        (
            "s = torch.tensor(l)",
            "s = torch.from_numpy(c)",
            "s = torch.tensor([l, r])[0]",
            "s = y + 1",
        ),
        ("pass", "LOG.append(k)", "BOX.v = k", "CACHE['k'] = l[0]"),
    ),
    expressions={
        "T": templates(_T),
        "X": templates(_X),
        "N": templates(_N),
        "K": templates(_K),
        "B": templates(_B),
        "G": templates(_G),
    },
    fallback={
        "T": "t",
        "X": "a",
        "N": "l",
        "K": "k",
        "B": "t.sum() > 0",
        "G": "iter(l)",
    },
    statements=templates(_STATEMENTS),
    compound=paragraphs(_COMPOUND),
    results=(
        "t, s, k",
        "t, s, k, l",
        "t, a, l",
        "{T}, {K}",
        "{T}, {X}",
        "[{T}, {T}], {N}",
        "{{'t': {t}, 'x': {x}, 'n': {n}}}",
        "Pair({T}, {K})",
        "types.SimpleNamespace(t={T}, k={K}, n={N})",
        "t",
        "(y, t, {t}[:2])",
    ),
    changes=[
        "ARRAY[0] = {K}",
        "ARRAY += 1",
        "ARRAY = ARRAY.copy()",
        "ARRAY = ARRAY.astype('float64')",
        "ARRAY = LEFT.repeat(2)",
        "SHARED.mul_(2)",
        "SHARED = SHARED.clone()",
        "HEAD = torch.from_numpy(ARRAY)",
        "BUF.mul_(-1)",
        "BOX.v = {K}",
        "BOX.items[1] = {K}",
        "BOX.items = [{K}, {K}, 2, 1]",
        "BOX.items.append({K})",
        "BOX.array = ARRAY",
        "BOX.array[2] = {K}",
        "BOX.array = numpy.arange(4)",
        "BOX.t = PARAM",
        "BOX = Box({K})",
        "CACHE.clear()",
        "CACHE['k'] = {K}",
        "LOG.clear()",
        "COUNT = {K}",
        "NET.eval()",
        "NET.train()",
        "PARAM.grad = None",
        "PARAM.data.fill_({K})",
        "PARAM.requires_grad_(False)",
        "batch = lambda rows: torch.as_tensor(rows)",
        "gated = lambda x: x + 1",
        "Box.twice = {K}",
        "_RUNNING = count_up({K})",
        "_SEEDED.manual_seed(1)",
    ],
    literals={"K": "0 1 2 3 0.5 -1 True".split()},
    drift=drift,
    drifting=1.0,
    flipping=0.06,
    functions=(1, 1, 1, 2),
    dynamic=("auto", "auto", {"k": True}, {"l": True}),
    depth=2,
    branching=0.4,
    surroundings=(
        "torch.autocast('cpu', torch.bfloat16)",
        "torch.inference_mode()",
        "doubled()",
        "noted(1)",
    ),
)
