"""Owns the grammar of control: branches and loops on tensors, numbers and sizes.

Types: H a tensor of six columns, R a row of one, S a scalar tensor, K a number, C a
condition, L a list of tensors.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ..grammar import Grammar, Parameter, paragraphs, templates
from ..worlds.control import WORLD

_H = """
    {h} * {K}
    {h} + {K}
    {h} - {h}.shape[0] * 0.1
    {h} / ({K} * {K} + 1)
    {h} + 1
    {h} * {h}
    {h} - {R}
    {h}[:, :]
    {h}[:]
    {h}.reshape(-1).view(x.shape[0], -1)
    {h}.view(-1, 6)
    {h}.t().contiguous().t()
    {h}.t().t()
    {h}[: {K}]
    {h}[1:].sum() + {h}
    torch.cat([{h}, {h}])[: {h}.shape[0]]
    torch.zeros(x.shape[0], 6) + {h}
    torch.where({h} > {K}, {h}, -{h})
    {h} + {h}[1:].shape[0]
    {h}.clone()
    {h}.detach()
    {h}.relu()
    {h}.flip(0)
    {h}.double().float()
    {h}.expand(-1, 6)
    torch.rand_like({h})
    {h}.new_full(({h}.size(0), 6), {K})
    {h} * torch.arange({h}.shape[0]).unsqueeze(1)
    (h if {C} else m)
    ({h}.clone() if {C} else {h})
    fn({h}, {K})
    many({h}, n)
    clipped({h}, 2)
    c.scale({h})
    NET({h})
    {L}[0]
    {L}[-1]
    sum({L})
    torch.stack([row * 2 for row in {h}])
    torch.stack(list(rows({h})))
    TAIL[: {h}.shape[0]] + 0
    BUF[: {h}.shape[0]]
"""
_R = """
    {h}[0]
    {h}[-1]
    {h}.sum(0)
    {h}.mean(0)
    c.w
    TOTAL
    BUF[1]
    {r} + {K}
    {r} * {r}
    torch.full((6,), {K})
    torch.rand(6)
    {h}.max(0).values
"""
_K = """
    n
    n
    p
    2
    3
    -1
    c.v
    c.half
    SCALE
    {h}.shape[0]
    x.shape[0]
    len(x)
    {h}.numel()
    x.size(0) // 2
    len(t)
    {k} + 1
    {k} * 2
    {k} - {k}
    {k} // 2
    {k} % 3
    {k} / 2
    max({k}, 2)
    min({k}, n)
    abs({k})
    int({k}) + 0
    float({k})
    ({k} if {C} else n)
    n ** 2
    -{k}
"""
_C = """
    {h}.sum() > 0
    {h}.sum() > {K}
    {h}.mean() > n * 0.1
    ({h}.abs() > 2).any()
    bool({h}.max() > {K})
    {h}.sum() > {h}.shape[0]
    not ({h}.min() > 0)
    bool(({h} > 0).all())
    {r}.sum() > 0
    {h}[0, 0] < {h}[-1, -1]
    {S} > {S}
    {h}.shape[0] > 3
    n > 4
    n % 2 == 0
    {k} > n
    p
    {h}.sum() > 0 and {h}.mean() < 1
    {h}.sum() > 0 or n > 3
    {h}.isnan().any()
    torch.equal({h}, {h})
    {h}.sum().item() > {K}
    (BUF.sum() > {K})
    0 < {h}.mean() < 1
    c.v > 2
    {h} is m
    {h}.dim() == 2
    {h}.requires_grad
"""
# Conditions that are false in the end when `@` shrinks, and of nan; `^` is another
# tensor.
_SHRINKING = """
    (@.abs() > 1).any()
    (@.abs() > 0.5).any()
    bool((@.abs() > abs({k}) + 1).any())
    @.abs().max() > 1
    (@.abs() > @.shape[0]).any()
    @.norm() > n
"""
_STATEMENTS = """
    {h} = {H}
    {h} = {H}
    {h} = {H}
    h = {H}
    h = {H}
    m = {H}
    m = h
    h, m = m, h
    m = h[:, 1:]
    g = h
    {=H} = {H}
    {=R} = {R}
    {r} = {R}
    {k} = {K}
    {k} = {K}
    {k} = {K}
    j = k
    k, j = j, k
    {=K} = {K}
    q = [h, k]
    h = q[0] * q[1]
    q = [m, n]
    q = (h, k, q[1])
    k = q[1]
    q[1] += 1
    t.append({h})
    u.append({K})
    u.append({R})
    {h} += 1
    {h} *= {K}
    {k} += {K}
    {h}.add_({K})
    {h}.mul_({K})
    {h}[0] = {K}
    {h}[:1].add_({R})
    {h}[:, 2:].mul_({K})
    {h}.t().add_({K})
    {h}.copy_({H})
    h = h.clone(); h.add_(1)
    m = h.view(-1, 6); m.add_({K})
    c.v = {K}
    c.v += 1
    c.put({K})
    c.w = {R}
    c.w.add_({K})
    c.last = {H}
    c.items.append({K})
    h = h * c.v
    BUF.add_(1)
    BUF[0] = {R}
    TAIL.mul_({K})
    TOTAL.add_({R}.detach())
    TOTAL = TOTAL + {R}
    SCALE = {K}
    LOG.append({K})
    LOG.append({H})
    zlib.crc32(b"a break")
    for i in range(n): h = h + i * 0.01
    for row in h: r = r + row
    h = torch.stack([row for row in h])
    assert {h}.sum() > -1000
    if {C}: h = h + 1
    if {C}: k = {K}
    if {C}: m = h
    if {C}: c.v = {K}
    if {C}: h.add_(1)
"""
# Loops in which `@` shrinks.
_LOOPS = """
    while {W@}:
        @ = @.clamp(-9, 9) * 0.4

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        ^ = ^ + 1

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        k = max(k, 2)

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        k += 1

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        ^ = @ * n

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        @ = @ / @.shape[0]

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        ^[0] = {K}

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        ^.add_(@)

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        if {C}:
            ^ = ^ - 1

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        u.append(k)

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        c.v += 1

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        for i in range(n):
            ^ = ^ + i

    while {W@}:
        @ = @.clamp(-9, 9) * 0.4
        ^ = torch.rand_like(@)

    while {W@} and k < 9:
        @ = @.clamp(-9, 9) * 0.4
        k += 1

    while True:
        @ = @.clamp(-9, 9) * 0.4
        if not (@.abs() > 1).any():
            break

    while True:
        @ = @.clamp(-9, 9) * 0.4
        if not @.abs().max() >= 1:
            break
        ^ = ^ + n
"""
_COMPOUND = """
    if {C}:
        {*}

    if {C}:
        {*}

    if {C}:
        {*}
    else:
        {*}

    if {C}:
        {*}
    else:
        {*}

    if {C}:
        {*}
    elif {C}:
        {*}
    else:
        {*}

    if {C}:
        {*}
        return {H}, {K}

    if {C}:
        h = {H}
    else:
        h = {H}

    if {C}:
        h = {H}
        k = {K}
    else:
        h = {H}
        k = {K}

    if {C}:
        h = {H}
        if {C}:
            m = {H}
        else:
            h = m
    else:
        m = {H}

    {=V}, {=K} = 0, 0
    while {v} < 3:
        {v} += 1
        {k} += 1
        {*}
        if {C}:
            break

    for {=K} in range(n):
        {*}

    for {=K} in range(n):
        h = h + {k} * 0.1

    for {=K} in range(n):
        m = {H}

    for {=K} in range({h}.shape[0]):
        h = h * 0.9 + h[:1]

    for {=K} in range({h}.shape[0]):
        u.append({h}[{k}])

    for {=K} in range(1, n):
        {*}
        if {C}:
            break

    for {=K} in range(n):
        if {C}:
            continue
        {*}

    for {=K} in range(n):
        if {C}:
            h = h - {k}

    for {=R} in {h}:
        r = r * 0.5 + {r}

    for {=R} in {h}:
        r = (r + {r}).tanh()
        u.append(r)

    for {=R} in {h}[1:]:
        {*}

    for {=R} in {h}.unbind(1):
        m = m + {r}.sum()

    for {=K}, {=R} in enumerate({h}):
        r = r + {r} * {k}

    for {=R}, {=R} in zip({h}, m):
        r = r + {r}

    {=L} = []
    for {=R} in {h}:
        r = r + {r}
        {l}.append(r)
    h = torch.stack({l})

    {=L} = [{h}]
    for _ in range(n):
        {l}.append({l}[-1] * 0.5)
    m = {l}[-1]

    with torch.no_grad():
        {*}

    with torch.no_grad():
        {*}
        zlib.crc32(b'a break')
        {*}

    with noted({K}):
        {*}

    with noted({K}):
        {*}
        zlib.crc32(b'a break')
        {*}

    try:
        {*}
        zlib.crc32(b'a break')
    finally:
        {*}

    try:
        {*}
    except RuntimeError:
        {*}

    try:
        if {C}:
            raise ValueError(k)
        {*}
    except ValueError as error:
        {*}

    for {=K} in range(n):
        {*}
        zlib.crc32(b'a break')

    def local(a, b):
        {*}
        if {C}:
            return a
        return a * b
    {=H} = local({H}, {K})

    def local(a, b):
        nonlocal k
        k = {K}
        {*}
        return a + b
    {=H} = local({H}, {K})

    def local(a):
        yield {H}
        if {C}:
            yield {H}
    for {=H} in local({H}):
        m = m + {h}.sum()

    {=L} = [{h} * i for i in range(n)]
    m = sum({l})
"""
_ARRAYS = (
    *["torch.randn({s}, 6) + {o}"] * 8,
    "torch.randn({s}, 6).t().contiguous().t()",
    "torch.randn({s} * 2, 6)[::2]",
    "torch.randn(6, {s}).t() + {o}",
    "BUF[:{s}]",
    "TAIL[:{s}]",
    "(torch.randn({s}, 6) + {o}).requires_grad_()",
    "(torch.randn({s}, 6) + {o}).requires_grad_() * 1",
    "torch.randn({s}, 6, dtype=torch.float64)",
    "torch.zeros({s}, 6)",
)


def drift(
    chooser: random.Random, arguments: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield arguments with other numbers, sizes and signs in each call."""
    box = arguments[2]
    form = chooser.choice(_ARRAYS)
    sizes = (4, 4, *chooser.choices((1, 2, 3, 5, 6), k=2))
    numbers = chooser.choices("23456", k=chooser.choice((1, 2, 2, 4)))
    rates = chooser.choice((["0.5"], ["0.5"], ["0.5", "1.0", "1", "0"]))
    for _ in range(chooser.randint(7, 10)):
        if chooser.random() < 0.05:
            form = chooser.choice(_ARRAYS)
        offset = chooser.choice(("-1", "-0.3", "0.0", "0.3", "1"))
        size = str(chooser.choice(sizes))
        x = form.replace("{s}", size).replace("{o}", offset)
        yield (x, chooser.choice(numbers), box, chooser.choice(rates))


_START = (
    "h = deep(x)",
    "h = noisy(x)",
    "h = noisy(x)",
    "h = x * 1",
    "h = x * 1",
    "h = x",
)

CONTROL = Grammar(
    name="control",
    world=WORLD,
    parameters=(
        Parameter("x", ["torch.randn(4, 6)"], ["torch.randn(4, 6)"]),
        Parameter("n", ["3"], ["3"]),
        Parameter("c", ["BOX", "BOX", "BOX", "Box(3)"], ["BOX"]),
        Parameter("p", ["0.5"], ["0.5"]),
    ),
    variables={"H": ["h", "m"], "K": ["k", "j"], "R": ["r"], "L": ["t"]},
    inner={"a": "H", "b": "K"},
    declared="global SCALE, TOTAL",
    prologue=(
        _START,
        ("m = h * 2 - 1", "m = h + 0", "m = h[:]", "m = h"),
        ("k = 2", "k = n", "k = x.shape[0]"),
        ("j = n", "j = 1.5"),
        ("t = [h]",),
        ("q, u = [m, n], []",),
        ("r = h[0]", "r = h.sum(0)", "r = TOTAL", "r = torch.zeros(6)"),
    ),
    expressions={
        "H": templates(_H),
        "R": templates(_R),
        "S": ["{h}.sum()", "{r}.mean()", "{h}[0, 1]", "torch.rand(())"],
        "K": templates(_K),
        "C": templates(_C),
        "Wh": templates(_SHRINKING.replace("@", "h")),
        "Wm": templates(_SHRINKING.replace("@", "m")),
        "L": ["[h, m]", "[{h}, {h}]", "[{h} * i for i in range(n)]", "[m]"],
    },
    fallback={"H": "h", "R": "r", "K": "n", "L": "[h]", "S": "h.sum()"},
    statements=templates(_STATEMENTS),
    compound=[
        *paragraphs(_COMPOUND),
        *paragraphs(_LOOPS.replace("@", "h").replace("^", "m")),
        *paragraphs(_LOOPS.replace("@", "m").replace("^", "h")),
    ],
    results=(
        "h, m, k, q, t, u, h.shape[0]",
        "h, m, k, q, t, u, h.shape[0]",
        "h, m",
        "h, k, r, u",
        "h",
        "[{H}, {K}, {R}], t",
        "{{'h': h, 'm': m, 'k': k, 'n': {K}}}",
        "c, h, j",
        "(h if {C} else m), k",
    ),
    changes=[
        "BOX.v = {K}",
        "BOX.v = {K}",
        "BOX.w = torch.randn(6)",
        "BOX.w = BUF[0]",
        "BUF.mul_(-1)",
        "BUF = BUF.clone()",
        "TAIL = BUF[1:]",
        "TOTAL = BOX.w",
        "SCALE = {K}",
        "BOX = Box({K})",
        "BOX.items = []",
        "fn = lambda h, k: h * k",
        "fn, many = many, fn",
        "Box.half = property(lambda self: {K})",
        "NET.eval()",
        "NET.train()",
        "LOG.clear()",
    ],
    literals={"K": "1 2 3 0.5 -1 True".split()},
    drift=drift,
    drifting=1.0,
    flipping=0.06,
    functions=(1, 1, 1, 2),
    dynamic=("auto", {"n": True}, {"x": (0,), "n": True}),
    depth=3,
    branching=0.45,
)
