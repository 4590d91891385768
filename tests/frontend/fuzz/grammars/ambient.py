"""Owns the grammar of surroundings: what holds around a call and changes between calls.

Modes, threads, precision, sizes, hooks, subclasses of tensors, weak references, and
traced callables in others. Types: H a tensor of six columns, R a row, K a number,
B a condition, Y a dtype, M a context manager, C a callable of a tensor.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ..grammar import Grammar, Parameter, paragraphs, templates
from ..worlds.ambient import WORLD

_H = """
    {h} * {K}
    {h} + {K}
    {h} - {R}
    {h} + {h}
    {h} / ({K} * {K} + 1)
    {h} @ W
    {h} @ W.to({h}.dtype)
    {h} @ LOW
    F.linear({h}, W, BIAS)
    F.linear({h}, W.to({h}.dtype))
    torch.mm({h}, W.t()).relu()
    torch.addmm(BIAS, {h}, W)
    torch.einsum("ij,jk->ik", {h}, W)
    {h}.half()
    {h}.bfloat16()
    {h}.float()
    {h}.double()
    {h}.to({Y})
    {h}.to(LIKE)
    {h}.type_as({h})
    {h}.to({h}.dtype)
    {h}.softmax(-1)
    {h}.sum(0, keepdim=True) + {h}
    {h}.cumsum(0)
    F.layer_norm({h}, (6,))
    F.layer_norm({h}.float(), (6,), BIAS)
    {h}.exp().clamp(max=4)
    {h}.norm() + {h}
    torch.cat([{h}, {h}])[: {h}.shape[0]]
    torch.cat([{h}, ROWS[:1]])[: {h}.shape[0]]
    torch.stack([{h}, {h}]).mean(0)
    torch.zeros({h}.shape) + {h}
    torch.ones({h}.shape[0], 6) * {h}
    torch.zeros_like({h}, dtype={Y})
    torch.tensor({K}) * {h}
    torch.rand_like({h})
    torch.rand({h}.shape[0], 6)
    torch.arange({h}.shape[0]).unsqueeze(1) * {h}
    torch.where({h} > {K}, {h}, {K})
    {h}.new_ones({h}.shape)
    {h}[:]
    {h}[:1] + {h}
    {h}[1:]
    {h}[: {h}.shape[0] // 2 + 1]
    {h}[::2]
    {h}[:0]
    {h}.t().t()
    {h}.t().contiguous().t()
    {h}.view(-1, 6)
    {h}.view(-1, 2, 3).transpose(1, 2).reshape(-1, 6)
    {h}.view(1, -1, 2, 3).to(memory_format=torch.channels_last).reshape(-1, 6)
    {h}.expand(2, -1, 6)[1]
    {h}.unsqueeze(0)[0]
    {h}.clone()
    {h}.detach()
    {h}.data
    {h}.contiguous()
    {h}.requires_grad_() * 2
    {h}.chunk(2, 1)[0].repeat(1, 2)
    {h}.split(1)[0]
    {h}.unbind(0)[0].expand(2, 6)
    {h}.narrow(0, 0, 1)
    {h}.as_strided((2, 6), (6, 1))
    ROWS[: {h}.shape[0]]
    ROWS[: {h}.shape[0]] + {h}
    PART
    EVERY + 0
    COLUMN.unsqueeze(1).expand(8, 6)
    STORE.view(8, 6)[: {h}.shape[0]]
    GEAR.rows
    FIXED.rows
    GEAR.turn({h})
    OTHER({h})
    PROXY.turn({h})
    GEAR.rate * {h}
    GEAR.lazy * {h}
    GEAR.twice + {h}
    GEAR.spare * {h}
    Gear.of({K}).turn({h})
    SETTING.rate * {h}
    dataclasses.replace(SETTING, rate={K}).rate * {h}
    dataclasses.replace(FIXED, rate={K}).rate * {h}
    (SLIM.last if SLIM.last is not None else {h})
    {C}({h})
    {C}({h})
    {C}({h})
    inner({h}, {K})
    inner({h}, {K})
    outer({h}, {K})
    away(inner, {h}, {K})
    away(torch.add, {h}, {K})
    away(lambda: {h} * 2)
    spread({h})
    HALF({h})
    _Scaled.apply({h}, {K})
    checkpoint(PLAIN, {h}, use_reentrant=False)
    checkpoint(inner, {h}, {K}, use_reentrant=False)
    checkpoint({C}, {h}, use_reentrant={B})
    checkpoint(lambda t: GEAR.turn(t) * {K}, {h}, use_reentrant=False)
    torch.add(DUCK, {h})
    {h}.as_subclass(Tagged)
    {h}.as_subclass(Tagged) * 2
    {h}.as_subclass(torch.Tensor)
    MARKED[0] + {h}
    torch.Tensor({h})
    cached({K}) + {h}
    _BY_KEY.get(TARGET, 1.0) * {h}
    len(_WEAK) * {h}
    (h if REF() is None else {h})
    (h if {B} else {H})
    sum(produce({h}))
    sum(delegating({h}), {h})
    next(produce({h})) + {h}
    functools.reduce(torch.add, list({h}), {h})
    sum(v for v in TABLE.values()) * {h}
    sum(SEEN) * {h}
    max(TABLE.items(), key=lambda item: item[1])[1] * {h}
    getattr(LOCAL, "value", 1.5) * {h}
    (lambda t, k=SCALE: t * k)({h})
    copy.copy(GEAR).turn({h})
    copy.deepcopy(PLAIN)({h})
    checked({h})
    {h}.index_select(0, torch.tensor([0]))
    {h}.gather(1, torch.zeros(1, 6, dtype=torch.long))
    {h}.masked_fill({h} > {K}, {K})
    F.dropout({h}, 0.5, {B})
    torch.nn.utils.parameters_to_vector([BIAS]) + {h}
    torch.func.functional_call(PLAIN, dict(PLAIN.named_parameters()), ({h},))
    torch.vmap(lambda row: row * 2)({h})
    torch.vmap(lambda row: GEAR.turn(row) * {K} + row.shape[0])({h})
    torch.func.jvp(lambda t: t * {K}, ({h},), (ROWS[:1],))[1]
    torch.vmap(torch.func.grad(lambda row: (row * row * {K}).sum()))({h})
    torch.func.grad(lambda t: (t * t).sum())({h})
    torch.autograd.grad((BIAS * 2).sum(), BIAS)[0] + {h}
"""
_STATEMENTS = """
    {h} = {H}
    {h} = {H}
    {h} = {H}
    {h} = {H}
    h = {H}
    h = {H}
    h = {H}
    m = {H}
    m = h
    h, m = m, h
    {=H} = {H}
    {=H} = {H}
    {=R} = {R}
    {k} = {K}
    {=K} = {K}
    {k} += {K}
    k += 1
    {h} += 1
    {h} *= {K}
    {h} += {R}
    {h} += {H}
    {h}.add_({K})
    {h}.mul_({K})
    {h}.copy_({H})
    {h}[0] = {K}
    {h}[:1].add_({K})
    {h}[:, 2:].mul_({K})
    {h}.t().add_({K})
    {h}.view(-1)[::2].zero_()
    {h}.diagonal().fill_({K})
    {h}.select(0, 0).copy_({R})
    {h}.detach().add_(1)
    {h}.data.mul_(2)
    {h}.data = {H}
    {h}.data = {h}.data.clone()
    {h}.requires_grad_()
    {h}.requires_grad_({B})
    {h}.detach_()
    {h}.zero_()
    {h}.resize_(min({h}.shape[0], 1), 6)
    {h}.resize_({h}.shape[0], 6)
    {h}.set_({H})
    {h}.t_(); {h}.t_()
    {h}.unsqueeze_(0); {h}.squeeze_(0)
    {h}.retain_grad()
    if {h}.requires_grad: {h}.register_hook(doubled)
    torch.add({h}, {K}, out={h})
    STORE.add_({K})
    STORE[3] = {K}
    ROWS[0] = {R}
    PART.mul_(0.5)
    COLUMN.fill_({K})
    EVERY.add_(PART[0])
    W.mul_(0.9)
    W.t()[0] = {K}
    BIAS.data.add_(1)
    BIAS.data = torch.zeros(6)
    BIAS.grad = None
    MARKED.add_(1)
    LOW.mul_(2)
    GEAR.rate = {K}
    GEAR.twice = {K}
    GEAR.k += 1
    GEAR.kept = {K}
    GEAR.lazy = {K}
    GEAR.rows = {H}
    GEAR.rows.add_({K})
    OTHER.items.append({K})
    GEAR.__dict__.pop("lazy", None)
    SETTING.depth += 1
    SETTING.tags.append({K})
    SLIM.rate = {K}
    SLIM.last = {H}
    FIXED.rate = {K}
    FIXED.rows.add_({K})
    TABLE["a"] = TABLE.pop("a", 0)
    TABLE[{K}] = {K}
    TABLE.setdefault("c", {K})
    TABLE.pop("b", None)
    TABLE.popitem()
    TABLE.update(a=1, z={K})
    TABLE = dict(reversed(TABLE.items()))
    SEEN.add({K})
    SEEN.discard({K})
    SEEN |= {{1, 7}}
    SEEN.pop()
    SEEN -= {{2}}
    LOG.append({K})
    LOG.append({H})
    LOG.append({B})
    LOG.append(sorted(SEEN, key=str))
    LOG.append(list(TABLE))
    LOG.append(str({h}.dtype))
    LOG.append({h}.stride())
    LOG.append({h}._version)
    LOG.append(type({h}).__name__)
    NAMES.insert(0, NAMES.pop())
    LOCAL.value = {K}
    SCALE = {K}
    NET.steps = {K}
    NET.mean = {R}
    NET.mean.add_(1)
    NET.train({B})
    NET.first.weight.data.mul_(0.5)
    _WEAK.pop("a", None)
    _WEAK["b"] = TARGET
    _WEAK["c"] = Target()
    _BY_KEY[GEAR] = {K}
    REF = weakref.ref(TARGET)
    TARGET = Target()
    weakref.finalize(Target(), LOG.append, {K})
    LOG.append(REF() is None)
    gc.collect()
    zlib.crc32(b"a break")
    torch.manual_seed(3)
    torch.set_grad_enabled({B})
    torch.set_default_dtype({Y})
    warnings.warn({h}.dtype.__repr__())
    checked({h})
    assert {h}.shape[0] < 5, "many rows"
    {h} @ torch.ones(5, 5)
    {h}.view(7)
    {h}[9]
    {h}.sum().backward()
    if {B}: h = {H}
    if {B}: m = {H}
    if {B}: k = {K}
    if {B}: {h}.add_(1)
    if {B}: raise KeyError({K})
    with {M}: h = {H}
    with {M}: m = {H}
    with contextlib.suppress(RuntimeError): h = {H}
    with contextlib.suppress(RuntimeError, IndexError): {h}.add_({H})
    {=R}, *rest = {H}
"""
_COMPOUND = """
    with {M}:
        {*}

    with {M}:
        {*}

    with {M}:
        {*}
        zlib.crc32(b'a break')
        {*}

    with {M}, {M}:
        {*}

    with contextlib.ExitStack() as stack:
        stack.enter_context({M})
        {*}
        stack.callback(LOG.append, {K})
        {*}

    with LOCK:
        {*}

    with contextlib.suppress(RuntimeError, KeyError):
        {*}

    with warnings.catch_warnings(record=True) as caught:
        {*}
    LOG.append(len(caught))

    try:
        {*}
    except RuntimeError as error:
        LOG.append(type(error).__name__)
        {*}

    try:
        {*}
    except (RuntimeError, ValueError, IndexError):
        {*}
    else:
        {*}

    try:
        {*}
    finally:
        {*}

    try:
        {h} @ torch.ones(5, 5)
        {*}
    except RuntimeError:
        {*}

    if {B}:
        {*}

    if {B}:
        {*}
    else:
        {*}

    if {B}:
        {*}
        return {H}, k

    for {=K} in TABLE.values():
        h = h + {k}

    for key in list(TABLE):
        LOG.append(key)
        {*}

    for {=K} in SEEN:
        m = m * {k}

    for {=K} in range(2):
        {*}

    for {=K} in range({h}.shape[0]):
        m = m + {k}

    for {=R} in {h}:
        r = r + {r}

    for {=R} in produce({h}):
        r = r + {r}
        if {B}:
            break

    for module in (PLAIN, NET):
        h = module(h)

    {=V} = 2
    while {v}:
        {v} -= 1
        {*}

    def local(a, b=k):
        {*}
        return a * b
    h = local({H})

    def local(a):
        nonlocal k
        k = {K}
        {*}
        return a + k
    m = away(local, {H})

    def local(a, b):
        with {M}:
            yield a * b
        {*}
        yield a + b
    for {=H} in local({H}, {K}):
        m = {h} + 1

    class Part(Gear):
        ratio = {K}
    h = Part({K}).turn({h})

    match {k}:
        case 1 | 2:
            {*}
        case float():
            {*}
        case _:
            {*}

    {=H} = {H}
    kept = weakref.ref({h})
    del {h}
    {=H} = kept() if kept() is not None else h
"""
_CHANGES = """
    SCALE = {K}
    STORE.add_(1)
    STORE = STORE.clone()
    ROWS = STORE.view(8, 6)
    ROWS = ROWS.clone()
    ROWS = torch.randn(6, 8).t()
    PART = ROWS[1:4]
    PART = PART.clone()
    PART = EVERY
    EVERY = ROWS[1::2]
    W = W.clone()
    W = W.t()
    W = W.to({Y})
    W = nn.Parameter(W.detach())
    W.requires_grad_()
    LOW = LOW.to({Y})
    LIKE = LIKE.to({Y})
    BIAS.requires_grad_(False)
    BIAS.requires_grad_(True)
    BIAS.data = BIAS.data.double()
    BIAS.data = BIAS.data.float()
    BIAS.grad = None
    BIAS = nn.Parameter(torch.ones(6))
    BIAS.register_hook(doubled)
    MARKED = MARKED.clone()
    MARKED = torch.ones(2, 6)
    Tagged.calls = None
    Tagged.calls = []
    DUCK.value = torch.zeros(6)
    TABLE["d"] = {K}
    TABLE.pop("a", None)
    TABLE = dict(reversed(TABLE.items()))
    SEEN.add({K})
    SEEN = set((5, 2, 1))
    LOG.clear()
    GEAR.k = {K}
    GEAR.rate = {K}
    GEAR.rows = PART
    GEAR.rows = GEAR.rows.clone()
    GEAR.kept = {K}
    GEAR.spare = {K}
    GEAR = Gear({K})
    GEAR, OTHER = OTHER, GEAR
    GEAR.turn = lambda h: h * 3
    GEAR.__class__ = type("Other", (Gear,), dict(ratio={K}))
    OTHER.__dict__.pop("lazy", None)
    Gear.ratio = {K}
    Gear.rate = {K}
    Gear.lazy = property(lambda self: {K})
    Gear.turn = lambda self, h: h - self.k
    Gear.__call__ = lambda self, h: h + {K}
    Rate.__get__ = lambda self, obj, owner=None: {K}
    del Gear.__getattr__
    SETTING.rate = {K}
    SETTING = Setting({K})
    SLIM.last = None
    SLIM.last = PART
    FIXED = Fixed({K}, ROWS[:2])
    object.__setattr__(FIXED, "rate", {K})
    TARGET = None
    TARGET = Target(); REF = weakref.ref(TARGET)
    _WEAK["b"] = TARGET
    _BY_KEY.clear()
    PROXY = weakref.proxy(OTHER)
    LOCAL.value = {K}
    NET.eval()
    NET.train()
    NET.to({Y})
    NET.float()
    NET.second.weight = nn.Parameter(torch.eye(6))
    NET.second.weight = NET.first.weight
    NET.first.weight.requires_grad_(False)
    NET.first.weight.grad = None
    NET.first = nn.Linear(6, 6, bias=False)
    NET.mean = ROWS[0]
    NET.rows = NET.rows.clone()
    NET.register_forward_hook(noting)
    NET.first.register_forward_pre_hook(before)
    NET.first.register_full_backward_hook(lambda module, grads, outs: None)
    NET._forward_hooks.clear()
    NET.forward = lambda h: h * 2
    NET.__dict__.pop("forward", None)
    PLAIN[0].weight.register_hook(doubled)
    PLAIN.append(nn.ReLU())
    PLAIN[1] = nn.Sigmoid()
    PLAIN[0].weight.data.copy_(W)
    PLAIN[0].weight.data = torch.eye(6)
    PLAIN[0] = NET.first
    PLAIN[0].requires_grad_(False)
    nn.utils.parametrize.register_parametrization(PLAIN[0], "weight", nn.Tanh())
    nn.utils.parametrizations.weight_norm(PLAIN[0])
    NORM.eval()
    NORM.momentum = 0.5
    SMALL.float()
    inner = lambda h, k: h - k
    inner, HALF = HALF, inner
    spread.__kwdefaults__["k"] = {K}
    spread.__kwdefaults__["kept"].clear()
    spread.__kwdefaults__ = dict(k=3, kept=[])
    HALF = functools.partial(spread, k={K})
    HALF.keywords["k"] = {K}
    HALF.__setstate__((spread, (), dict(k={K}), dict()))
    outer.__code__ = (lambda h, k: h + k).__code__
    produce = lambda h: iter(h)
    cached.cache_clear()
    cached({K})
    cached({K}).add_(1)
    cached = lambda k: torch.ones(6)
    checked.__code__ = (lambda h: h + 1).__code__
    _Scaled.forward = staticmethod(lambda ctx, h, k: h + k)
    torch.set_default_dtype(torch.float64)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms({B})
    torch.set_float32_matmul_precision({P})
    torch._C._set_mkldnn_enabled({B})
    torch.rand(1)
    torch.manual_seed({K} // 1)
    nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1)
    nn.modules.module._global_forward_hooks.clear()
"""
_ARRAYS = (
    *["torch.randn({s}, 6) + {o}"] * 5,
    *["(torch.randn({s}, 6) + {o}).bfloat16()"] * 2,
    *["(torch.randn({s}, 6) + {o}).half()"] * 2,
    "torch.randn({s}, 6, dtype=torch.float64)",
    "torch.randn({s} * 2, 6)[::2]",
    "torch.randn(6, {s}).t()",
    "ROWS[:{s}]",
    "PART",
    "EVERY[:{s}]",
    "STORE.view(8, 6)[:{s}]",
    "(torch.randn({s}, 6) + {o}).requires_grad_()",
    "torch.randn({s}, 6).bfloat16().requires_grad_()",
    "torch.randn({s}, 6).requires_grad_() * 1",
    "torch.zeros({s}, 6)",
    "torch.randn({s}, 6).as_subclass(Tagged)",
    "nn.Parameter(torch.ones({s}, 6))",
    "torch.ones(1, 6).expand({s}, 6)",
)
_NUMBERS = ("1", "2", "3", "0.5", "-1", "True")
_OBJECTS = ("GEAR", "GEAR", "OTHER", "Gear(k)", "PROXY")
_SURROUNDINGS = (
    'torch.autocast("cpu", dtype=torch.bfloat16)',
    'torch.autocast("cpu", dtype=torch.bfloat16)',
    'torch.autocast("cpu", dtype=torch.float16)',
    'torch.autocast("cpu", enabled=False)',
    'torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)',
    "torch.inference_mode()",
    "torch.inference_mode()",
    "torch.no_grad()",
    "default(torch.float64)",
    "default(torch.bfloat16)",
    "deterministic()",
    'precision("medium")',
    "torch.autograd.set_detect_anomaly(True)",
    "Noting()",
    "Doubling()",
    "_Dispatching()",
    "saving()",
    "torch.device('cpu')",
    "torch.random.fork_rng()",
    "torch._C.DisableTorchFunctionSubclass()",
)


def drift(
    chooser: random.Random, arguments: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield arguments with other sizes in each call, now and then of another type."""
    box = arguments[2]
    form = chooser.choice(_ARRAYS)
    sizes = (4, 4, *chooser.choices((0, 1, 2, 3, 5, 6), k=2))
    numbers = chooser.choices(_NUMBERS, k=chooser.choice((1, 1, 2, 4)))
    for _ in range(chooser.randint(5, 9)):
        if chooser.random() < 0.15:
            form = chooser.choice(_ARRAYS)
        if chooser.random() < 0.1:
            box = chooser.choice(_OBJECTS)
        size, offset = str(chooser.choice(sizes)), chooser.choice(("-1", "0.0", "1"))
        x = form.replace("{s}", size).replace("{o}", offset)
        yield (x, chooser.choice(numbers), box)


_MANAGERS = """
    torch.autocast("cpu", dtype=torch.bfloat16)
    torch.autocast("cpu", dtype=torch.bfloat16)
    torch.autocast("cpu", dtype=torch.float16)
    torch.autocast("cpu", enabled={B})
    torch.no_grad()
    torch.enable_grad()
    torch.set_grad_enabled({B})
    torch.inference_mode()
    torch.inference_mode({B})
    noted({K})
    noted({K})
    LOCK
    contextlib.nullcontext()
    default({Y})
    Noting()
    Doubling()
    saving()
    torch.random.fork_rng()
    torch._C.DisableTorchFunctionSubclass()
    torch.autograd.profiler.record_function("part")
"""

_FIRST = [
    form.replace("{s}", size).replace("{o}", "0.3") for form in _ARRAYS for size in "24"
]

AMBIENT = Grammar(
    name="ambient",
    world=WORLD,
    parameters=(
        Parameter("x", _FIRST, [*_FIRST, "torch.zeros(0, 6)"], 3),
        Parameter("k", ["2", "1", "0.5"], _NUMBERS),
        Parameter("o", ["GEAR"], _OBJECTS),
    ),
    variables={"H": ["x", "h", "m"], "K": ["k"], "R": ["r"]},
    inner={"a": "H", "b": "K"},
    declared=("global SCALE, TABLE, SEEN, REF, TARGET"),
    prologue=(
        ("h = x * 1", "h = x * 1", "h = x", "h = x[:]", "h = inner(x, 2)"),
        ("m = h + 0", "m = h * 2", "m = h", "m = ROWS[: x.shape[0]]", "m = x"),
        ("r = torch.zeros(6)", "r = TINY", "r = BIAS * 1", "r = ROWS[0]"),
    ),
    expressions={
        "H": templates(_H),
        "R": templates(
            """
            {h}.sum(0)
            {h}.mean(0)
            {h}[0]
            ROWS[1]
            TINY
            BIAS
            BIAS * {K}
            LOW[0]
            NET.mean
            cached({K})
            torch.ones(6)
            torch.full((6,), {K})
            torch.rand(6)
            {r} * {K}
            {r}.to({Y})
            """
        ),
        "K": templates(
            """
            k
            o.k
            o.rate
            o.lazy
            o.twice
            o.spare
            2
            0.5
            SCALE
            GEAR.ratio
            Gear.rate
            SETTING.rate
            SETTING.depth
            SLIM.rate
            FIXED.rate
            NET.steps
            Kind.TWO
            Counted.made
            len(SEEN)
            len(TABLE)
            len(LOG)
            len(GEAR.items)
            TABLE["a"]
            TABLE.get(3, 1)
            next(iter(TABLE.values()))
            {h}.shape[0]
            {h}.dim()
            {h}.numel() // 6
            {h}.storage_offset()
            {h}.stride(0)
            {h}._version
            {h}.element_size()
            torch.finfo({h}.dtype).bits
            {k} + 1
            {k} * 2
            max({k}, 1)
            -{k}
            ({k} if {B} else 2)
            {h}.sum().item()
            spread.__kwdefaults__["k"]
            sum(map(len, NAMES))
            """
        ),
        "B": templates(
            """
            True
            False
            torch.is_grad_enabled()
            torch.is_inference_mode_enabled()
            torch.is_autocast_enabled("cpu")
            torch.get_autocast_dtype("cpu") == torch.bfloat16
            torch.get_default_dtype() == torch.float32
            torch.are_deterministic_algorithms_enabled()
            torch.get_float32_matmul_precision() == "highest"
            torch.is_anomaly_enabled()
            {h}.dtype == {Y}
            {h}.dtype is h.dtype
            {h}.is_floating_point()
            {h}.requires_grad
            {h}.is_leaf
            {h}.is_inference()
            {h}.is_contiguous()
            {h}._is_view()
            {h}.grad is None
            {h}.grad_fn is None
            {h}.shape == {h}.shape
            {h}.shape[0] > 2
            {h}.data_ptr() == x.data_ptr()
            {h} is x
            {h}.sum() > 0
            ({h} > 9).any()
            {h}.isnan().any()
            isinstance({h}, Tagged)
            type({h}) is torch.Tensor
            isinstance({h}, nn.Parameter)
            BIAS.requires_grad
            NET.training
            NET.first.weight is NET.second.weight
            REF() is TARGET
            REF() is None
            "a" in _WEAK
            TARGET in _BY_KEY
            threading.current_thread() is threading.main_thread()
            hasattr(LOCAL, "value")
            "a" in TABLE
            {k} in SEEN
            {k} > 1
            isinstance({k}, int)
            "a" in Gear
            GEAR == OTHER
            GEAR is o
            SETTING > Setting(0.5)
            hasattr(GEAR, "spare")
            torch.allclose({h}, {h})
            """
        ),
        "Y": templates(
            """
            torch.float32
            torch.float32
            torch.bfloat16
            torch.float16
            torch.float64
            {h}.dtype
            W.dtype
            torch.get_default_dtype()
            torch.result_type({h}, {k})
            torch.promote_types({h}.dtype, torch.bfloat16)
            """
        ),
        "M": templates(_MANAGERS),
        "C": templates(
            """
            NET
            NET
            PLAIN
            PLAIN
            NORM
            SMALL
            GEAR.turn
            OTHER
            lowered
            lowered
            raised
            quiet
            HALF
            torch.relu
            nn.functional.silu
            (lambda t: t * SCALE)
            functools.partial(inner, k={K})
            torch.no_grad()(torch.tanh)
            """
        ),
    },
    fallback={
        "H": "h",
        "R": "r",
        "K": "k",
        "B": "k > 1",
        "Y": "torch.float32",
        "M": "torch.no_grad()",
        "C": "PLAIN",
    },
    statements=templates(_STATEMENTS),
    compound=paragraphs(_COMPOUND),
    results=(
        "h, m, k",
        "h, m, k",
        "h, m, r",
        "h",
        "[{H}, {K}, {B}]",
        "{H}",
        "{H}, {Y}",
        "{{'h': h, 'm': m[:1], 'k': {K}}}",
        "o, h",
        "(x, h, {h}.shape, {h}.stride())",
        "(SLIM, GEAR.rows, h)",
        "(ROWS[:2], m)",
    ),
    changes=templates(_CHANGES),
    literals={
        "K": "1 2 3 0.5 -1 True".split(),
        "Y": "torch.float32 torch.float64 torch.bfloat16 torch.float16".split(),
        "B": ["True", "False"],
        "P": ["'highest'", "'high'", "'medium'"],
    },
    drift=drift,
    drifting=0.5,
    flipping=0.06,
    functions=(1, 1, 1, 2),
    dynamic=("auto", "auto", {"x": (0,)}, {"k": True}),
    depth=3,
    branching=0.3,
    surroundings=_SURROUNDINGS,
    nested=("inner", "outer", "PLAIN", "lowered"),
)
