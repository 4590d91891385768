"""Owns the grammar of state: all that Python programs keep, read and write.

Types: T a tensor of three columns, V a vector of three, S a scalar tensor, M a mask, J
integers; F float, I small int, B bool, Z string, N list of floats, L list of tensors, D
dict of floats, U pair of tensors, C callable of a tensor, O an object with attributes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ..grammar import Grammar, Parameter, templates
from ..worlds.state import WORLD

EXPRESSIONS: dict[str, str] = {
    "T": """
        {T} + {T}
        {T} * {F}
        {T} - {V}
        {T} / (abs({F}) + 1.0)
        -{T}
        {T} * {T}
        {F} * {T} + {I}
        {V} * {T}
        torch.relu({T})
        {T}.sigmoid()
        {T}.tanh().abs()
        torch.where({M}, {T}, {T})
        {T}.clone()
        {T}.detach()
        {T}.contiguous()
        {T}[:]
        {T}.view(-1, 3)
        {T}.t().t()
        {T}.flip(0)
        {T}.masked_fill({M}, {F})
        torch.cat([{T}, {T}])[: LIMIT]
        torch.stack([{T}, {T}]).mean(0)
        {T}.softmax(-1)
        F.dropout({T}, 0.5, {B})
        torch.rand_like({T})
        {T}[{IX}:]
        {T}.double().float()
        {T}.to({T}.dtype)
        {T}.expand(-1, 3)
        {T} @ {T}.t() @ {T}
        {T}.reshape({T}.shape)
        F.layer_norm({T}, (3,))
        F.linear({T}, torch.eye(3), {V})
        {T}.clamp(-{I}, abs({F}))
        {T}.index_select(1, torch.tensor([0, 2, 1]))
        {T}.cumsum(0)
        sum({L})
        {L}[0]
        {U}[0]
        {C}({T})
        OBJ.scale({T})
        OTHER.scale({T})
        Base.scale(OBJ, {T})
        OBJ.double({T})
        getattr(OBJ, "latest", {T})
        READ({T})
        NET({T})
        NET.linear({T})
        NET.norm({T})
        NET.stack({T})
        ADD({T})
        HALF({T})
        default({T}, {F}, bias={F})
        default({T}, 1.0, *{N}, **{D})
        collect({T})
        power({T}, {I} % 4)
        getattr(OBJ, "double")({T})
        functools.reduce(operator.add, {L}, {T})
        functools.reduce(lambda a, b: a + b, {L})
        ({T} if {B} else {T})
        {T}.add({T}, alpha={I})
        torch.max({T}, {T})
        {T}.sort(dim=0).values
        {T}.new_zeros({T}.shape) + {V}
        torch.empty_like({T}).fill_({F})
        {T}.transpose(0, 1).contiguous().t()
        {T}.unsqueeze(0).squeeze(0)
        FUNCTIONS["neg"]({T})
        FUNCTIONS.get({Z}, torch.relu)({T})
        torch.einsum("ij,ij->ij", {T}, {T})
        {T}.where({M}, {F})
        torch.stack([{T}, {T}], 0)[{B} * 1]
        {T}.roll(1, 0)
        torch.outer({T}.sum(1), {V})
        F.embedding(torch.tensor([0, {I} % 2]), {T})[:1]
        {T}.gather(1, torch.tensor([[0], [1]]))[:, :1] + {V}
        {T}.masked_select({M}).sum() + {T}
    """,
    "V": """
        W
        PAIR[{B}]
        {T}.sum(0)
        {T}.mean(0)
        {T}[0]
        {T}[-1]
        {V} * {F}
        {V} + {S}
        {T}.max(0).values
        torch.tensor([1.0, {F}, {F}])
        torch.zeros(3)
        NET.total
        NET.scale
        torch.rand(3)
        torch.full((3,), {F})
        {T}.diagonal()[:3]
        torch.tensor({N})[:3]
        torch.arange(3) * {F}
    """,
    "S": """
        {T}.sum()
        {V}.mean()
        torch.tensor({F})
        {V}[{IX}]
        {V}.dot({V})
        {T}.norm()
        {T}[0, {IX}]
    """,
    "M": """
        {T} > 0
        {T} > {T}
        {T}.isnan()
        {M} | ({T} < {F})
        ~{M}
        {T} == {T}
    """,
    "J": """
        {T}.long()
        {T}.argsort(0)
        {T}.int() + {I}
        {M}.sum(0)
    """,
    "F": """
        0.5
        2.0
        -1.5
        -0.0
        SCALE
        float({I})
        {N}[0]
        {N}[-1]
        {D}.get("a", {F})
        {D}.get({Z}, 0.0)
        TABLE["a"]
        OBJ.gain
        OBJ.factor
        OBJ.total
        OBJ.auto_x
        OBJ[0]
        OTHER.shift
        CFG.rate
        SLOT.value
        POINT.x
        POINT[1]
        CONSTANT[1][0]
        ORDERED["a"]
        QUEUE[0]
        GROUPS["a"][0]
        COUNTS["a"] * 0.5
        MODE.value * 0.5
        {F} + {F}
        {F} * {F}
        {F} if {B} else {F}
        max({F}, {F})
        min({N}, default=1.0)
        sum({N})
        abs({F})
        math.sqrt(abs({F}))
        len({N}) / 2
        round({F}, 1)
        functools.reduce(operator.mul, {N}, 1.0)
        next(iter({N}), 3.0)
        sorted({N})[0]
        sum(x * 2 for x in {N})
        sum(produce({N}))
        getattr(OBJ, "missing", {F})
        getattr(CFG, "rate")
        operator.itemgetter(0)({N})
        float("1.5")
        max({D}.values())
        dict(zip("ab", {N})).get("b", 1.0)
        Mode(2).value * 1.0
        Base(2.0).total
        Child.make({F}).gain
        math.prod({N})
        (lambda a, b=2.0: a * b)({F})
        CODES.get({I}, {F})
        CODES.get({B}, {F})
        CODES[(1, "a")]
        {{POINT: 1.5}}.get(POINT)
        {{Mode.PLAIN: 1.0, Mode.DOUBLE: 2.0}}[MODE]
        WATCHED.twice
        WATCHED.value
        len(Watched.seen) * 0.5
        getattr(ITEMS, "last", {F})
        SHARED[0][0]
        QUEUE.maxlen * 1.0
        [lambda: i * 1.0 for i in range(3)][0]()
        COUNTS.most_common(1)[0][1] * 0.5
        sum(ORDERED.values())
        {T}.sum().item()
    """,
    "I": """
        0
        1
        2
        LIMIT
        len({N})
        len({Z})
        int({F})
        len({T})
        {T}.shape[1]
        {T}.ndim
        CFG.depth
        len(TABLE)
        len(OBJ)
        NET.depth
        {I} + 1
        {I} % 2
        {I} // 2
        COUNTS["b"]
        MODE.value
        sum(1 for x in {N} if x > 1)
        {N}.index(1.0) if 1.0 in {N} else 0
        "xyz".find({Z})
        {T}.size(0)
        {T}.stride(0)
    """,
    "IX": "0\n1\n2\n-1",
    "B": """
        True
        False
        {F} > {F}
        {I} == {I}
        {Z} == "b"
        {Z} in TABLE
        {Z} in TAGS
        {I} in INTS
        bool({N})
        not {B}
        {B} and {B}
        {B} or {B}
        isinstance({O}, Child)
        hasattr({O}, "extra")
        hasattr(OBJ, "missing")
        {O} is OBJ
        {T} is {T}
        LAST is None
        MODE is Mode.PLAIN
        MODE == Mode.DOUBLE
        NET.training
        {T}.shape[0] > 2
        {T}.requires_grad
        {T}.is_contiguous()
        {T}.dtype == torch.float32
        torch.is_grad_enabled()
        bool(OBJ)
        {F} in NUMBERS
        any(v > 1 for v in {N})
        all({N})
        TAGS >= {"p"}
        {N} == {N}
        ADD == Adder(1.0)
        callable(LAST)
        {D} == TABLE
        isinstance({T}, nn.Parameter)
        bool({T}.sum() > 0)
        {Z}.startswith("a")
        1.0 <= {F} < 5.0
        any({N}) is True
        {T} is W
        NUMBERS is NESTED[0]
        NUMBERS is {N}
        SHARED[0] is SHARED[1]
        LAST is OBJ
        TAGS == {"q", "p"}
        TAGS.isdisjoint({"a", {Z}})
        POINT == Point(1.0, 2.0)
        {I} is True
        {F} == {I}
        OBJ == OTHER
        CFG == Config()
        type({O}) is Base
        issubclass(type({O}), Base)
    """,
    "Z": """
        "a"
        "b"
        LABEL
        f"{{LABEL}}"
        LABEL.upper().lower()
        CFG.names[0]
        "ab"[{I} % 2]
        str({I})
        f"{{{I}}}-{{{F}:.1f}}"
        "-".join(CFG.names)
        "%s" % LABEL
        sorted(TABLE)[0]
        next(iter(TABLE), "a")
        type({O}).__name__
        "{{}}".format({I})
        min(TAGS)
    """,
    "N": """
        NUMBERS
        [1.0, {F}]
        [{F}, {F}, {F}]
        NESTED[0]
        NESTED[-1]
        NUMBERS[1:]
        list({D}.values())
        [x * 2 for x in {N}]
        [x for x in {N} if x > {F}]
        sorted({N}, reverse=True)
        sorted({N}, key=lambda x: -x)
        list(map(abs, {N}))
        list(filter(None, {N}))
        {N} + [{F}]
        list(QUEUE)
        list(reversed({N}))
        list(produce({N}))
        [a * b for a, b in zip({N}, NUMBERS)]
        [i * v for i, v in enumerate({N})]
        list(OBJ)
        OBJ.items
        list(itertools.chain({N}, [{F}]))
        list(itertools.islice({N}, 2))
        list(itertools.accumulate({N}))
        [*{N}, {F}]
        sum(NESTED, [])
        list(POINT)
        GROUPS["a"]
        [float(v) for v in sorted(INTS)]
        [x for row in NESTED for x in row]
        {N} * 2
        {N}.copy()
        list({D}.values())[:2]
        list(dict.fromkeys({N}))
    """,
    "L": """
        [{T}, {T}]
        [{T}]
        [{T} for _ in range(2)]
        [{T} * v for v in {N}]
        list({T}.split(1))
        list({T}.unbind(0))
        [t + 1 for t in {L}]
        PAIR
        list(map(torch.relu, {L}))
        {L}[::-1]
        list({T})
        [f({T}) for f in (torch.abs, OBJ.scale)]
    """,
    "D": """
        TABLE
        {{"a": {F}, "c": {F}}}
        dict(TABLE, d={F})
        {{**TABLE, "z": {F}}}
        {{k: v * 2 for k, v in TABLE.items()}}
        TABLE | {{"q": {F}}}
        dict(ORDERED)
        vars(CFG) if {B} else TABLE
        dict(zip(["a", "b"], {N}))
        dict(sorted(TABLE.items()))
        ORDERED
    """,
    "U": """
        ({T}, {T})
        {T}.chunk(2)
        ({T}, W)
        tuple({L})
        divmod({T}, 2.0)
        {T}.max(0)
    """,
    "C": """
        OBJ.scale
        OTHER.scale
        (lambda t: t * {F})
        READ
        HALF
        ADD
        NET
        torch.relu
        functools.partial(default, bias={F})
        functools.partial(power, n={I} % 3)
        (OBJ.double if {B} else torch.neg)
    """,
    "O": """
        OBJ
        OTHER
        (OBJ if {B} else OTHER)
        Child({F})
        Base({F})
    """,
}

STATEMENTS = """
zlib.crc32(b"a break")
{=I} = zlib.adler32(b"a break") % 7
{=F} = random.random()
{=F} = random.uniform(0, 1)
Base.factor = {F}
Child.shift = Base.shift + 0.5
Child.factor = {F}
Base.latest = {T}
Watched.limit = {I}
setattr(Child, "scale", lambda self, t: t * {F})
Base.factor, k = k, Child.factor
{=T} = {T}
{=T} = {T}
{=T} = {T}
{=T} = {T} * k
{=V} = {V}
{=F} = {F}
{=F} = {F}
{=N} = {N}
{=N} = {N}
{=L} = {L}
{=D} = {D}
{=O} = {O}
{=C} = {C}
{=B} = {B}
{=I} = {I}
{=Z} = {Z}
{=T}, {=T} = {T}, {T}
{=F}, *{=N} = [{F}, *{N}]
{=F}, {=F} = POINT
{t} = {T}
{t} = {T}
{f} = {F}
{t} += {T}
{t} *= {F}
{f} += {F}
{n} += ({N})[:4]
{t}.add_({F})
{t}.mul_({T})
{t}[0] = {F}
{t}[:, 1:] = {F}
{t}[{M}] = {F}
{t}.t().mul_({F})
{t}.view(-1)[0] = {F}
{t}[:1].add_({V})
torch.add({T}, {T}, out={t})
W.add_({F})
W[{IX}] = {F}
NET.total.add_({T}.detach().mean(0))
NET.total = NET.total * {F}
PAIR[0] = {V}
{n}.append({F})
{n}.extend(({N})[:4])
{n}.insert(0, {F})
{n}[0] = {F}
{n}.sort()
{n}.pop() if {n} else None
del {n}[:1]
{l}.append({T})
{l}[0] = {T}
NUMBERS.append({F})
NUMBERS[0] = {F}
NUMBERS.reverse()
NESTED[0].append({F})
NESTED.append([{F}])
TABLE["k"] = {F}
TABLE["a"] = {F}
TABLE.update(b={F}, n={F})
TABLE |= {D}
TABLE.pop("b", None)
TABLE.setdefault({Z}, {F})
TABLE.pop({Z}, None); TABLE[{Z}] = {F}
{d}["new"] = {F}
{d}.pop("a", None)
ORDERED["c"] = {F}
ORDERED.move_to_end("a")
TAGS.add({Z})
TAGS.discard("p")
INTS.add({I})
QUEUE.append({F})
QUEUE.appendleft({F})
QUEUE.rotate(1)
COUNTS[{Z}] += 1
COUNTS.update({Z})
GROUPS[{Z}].append({F})
LOG.append({T})
LOG.append({F})
LOG.append(({T}, {F}))
LOG.append({L})
LOG.append({O})
LOG.append(lambda t, k={F}: t + k)
LOG.clear()
LOG[-1:] = [{F}]
COUNT += 1
COUNT = {I}
LAST = {T}
LAST = {F}
LAST = [{T}, {O}]
LAST = {C}
OBJ.gain = {F}
OBJ.total = {F}
OBJ.note = {T}
OBJ.items.append({F})
OBJ.items = {N}
OBJ[0] = {F}
OBJ.memo[{Z}] = {T}
OBJ.memo = {}
{o}.gain = {F}
{o}.tag = {Z}
setattr(OBJ, "dynamic", {F})
if hasattr(OBJ, "note"): del OBJ.note
SLOT.value = {F}
SECOND.value = {F}
SLOT.tensor = {T}
CFG.rate = {F}
CFG.names.append({Z})
NET.depth = {I} % 3
NET.train({B})
ADD.amount = {F}
global_ = {F}
WRITE({F})
print(end="")
MODE = Mode.DOUBLE
OBJ.factor = {F}
{t}.mark = {F}
{=L} = []
{=D} = {}
{=N} = []
CODES[{I}] = {F}
CODES[{B}] = {F}
WATCHED.value = {F}
ITEMS.append({F})
SHARED[0] = {N}
SHARED[0].append({F})
TAGS |= {{"z", {Z}}}
ORDERED.popitem()
COUNTS.subtract({Z})
QUEUE.extend(({N})[:4])
FUNCTIONS["neg"] = {C}
LAST = (lambda t: t + {F})
LAST = WATCHED
LOG.append(CFG)
LOG.append(functools.partial(power, n={I}))
LOG.append([NUMBERS, {N}])
{t}.copy_({T})
{t}.clamp_(-1.0, 1.0)
{t}.zero_()
PAIR[1].mul_({F})
{=T} = NET.linear.weight
{=T} = {t}[:1]
"""

COMPOUND = (
    "if {B}:\n    {*}",
    "if {B}:\n    {*}\nelse:\n    {*}",
    "if {B}:\n    {*}\nelif {B}:\n    {*}\nelse:\n    {*}",
    "for {=F} in {N}:\n    {t} = {T}",
    "for {=F} in list({N}):\n    {*}",
    "for {=I} in range({I} % 4):\n    {*}",
    "for {=I}, {=F} in enumerate({N}[:3]):\n    {*}",
    "for {=Z}, {=F} in {D}.items():\n    {*}",
    "for {=Z} in {D}:\n    {*}",
    "for {=T} in {L}:\n    {t} = {T}",
    "for {=F}, {=T} in zip({N}, {L}[:2]):\n    {*}",
    "for {=F} in produce({N}[:3]):\n    {*}\n    if {B}:\n        break",
    "for {=F} in guarded([*{N}]):\n    {*}\n    if {B}:\n        break",
    "for {=F} in {N}[:4]:\n    if {B}:\n        continue\n    {*}\nelse:\n    {*}",
    "{=V}, {=I} = 0, 0\nwhile {v} < 3:\n    {v} += 1\n    {i} += 1\n"
    "    {*}\n    if {B}:\n        break",
    "try:\n    {*}\nfinally:\n    {*}",
    "try:\n    {=F} = TABLE[{Z}]\n    {*}\nexcept KeyError as error:\n    {*}",
    "try:\n    {*}\n    raise ValueError({Z})\nexcept ValueError as error:\n    {*}",
    "try:\n    {*}\n    assert {B}\nexcept AssertionError:\n    {*}\nelse:\n    {*}",
    "try:\n    {=F} = 1.0 / {F}\nexcept ZeroDivisionError:\n    {*}",
    "try:\n    {=F} = OBJ.absent\nexcept AttributeError:\n    {*}",
    "with torch.no_grad():\n    {*}",
    'with torch.autocast("cpu", dtype=torch.bfloat16):\n    {*}',
    "Base.factor = {F}\ntry:\n    {*}\nfinally:\n    Base.factor = 2.0",
    "with torch.enable_grad():\n    {*}",
    "with noted({F}) as {=F}:\n    {*}",
    "with ADD:\n    {*}\n    if {B}:\n        raise KeyError",
    "with contextlib.suppress(KeyError):\n    {*}\n    {=F} = TABLE[{Z}]",
    "def local(t, k={F}):\n    {*}\n    return t * k\n{=T} = local({T})",
    "def local(t):\n    nonlocal {f}\n    {f} = {F}\n    return t\n{=T} = local({T})",
    "def local():\n    yield {F}\n    {*}\n    yield {F}\n{=N} = list(local())",
    "def local():\n    yield {T}\n    {*}\n    return {T}\n{=L} = list(local())",
    "{=C} = (lambda t, k={F}: t * k + {F})\n{=T} = {c}({T})",
    "{=G} = iter({N})\n{=F} = next({g}, 1.0)\n{*}\n{=F} = next({g}, 2.0)",
    "{=G} = produce({N})\n{=F} = next({g}, 1.0)\n{*}\n{=N} = list({g})",
)

RESULTS = (
    "{T}",
    "{T}",
    "{T}",
    "({T}, {T})",
    "[{T}, {F}]",
    "{{'t': {T}, 'f': {F}, 'z': {Z}}}",
    "({t}, {t}, {L})",
    "{t}",
    "{L}",
    "({N}, {T})",
    "({D}, {T})",
    "({O}, {T})",
    "(lambda t: t * {F}), {T}",
    "({B}, {I}, {F}, {Z})",
    "Point({F}, {F}), {T}",
    "Config({F}), {T}",
    "{T}.view(-1), {t}",
    "Adder({F}), {T}",
    "(LOG, NUMBERS, {t})",
    "deque([{T}, {F}]), set([{Z}]), OrderedDict(x={T})",
    "({S}, {J}, {M})",
    "None",
)

# What happens to the state between two calls.
CHANGES = """
SCALE = {F}
LIMIT = {I}
LABEL = {Z}
LAST = None
LAST = W
W = torch.randn(3)
W = W.clone().requires_grad_()
W = PAIR[0]
W.add_(1)
PAIR[0] = PAIR[1]
PAIR.append(torch.ones(3))
NUMBERS.append({F})
NUMBERS[0] = {F}
NUMBERS.clear()
NUMBERS = [2.0]
NUMBERS = NESTED[0]
NUMBERS[0] = 1
NUMBERS[0] = True
NESTED[0] = NESTED[-1]
NESTED[0][0] = {F}
TABLE["b"] = {F}
TABLE["n"] = {F}
TABLE.pop("a", None)
TABLE = dict(reversed(TABLE.items()))
TABLE = OrderedDict(TABLE)
TABLE["a"] = 1
TAGS.add("z")
TAGS = {"b", "a"}
INTS = {8, 0, 1}
INTS = {1, 0, 8}
QUEUE.append({F})
ORDERED.move_to_end("a")
ORDERED["b"] = {F}
COUNTS["a"] += 1
GROUPS["b"].append(1.0)
LOG.clear()
MODE = Mode.DOUBLE
POINT = Point({F}, {F})
CFG.rate = {F}
CFG.names[0] = {Z}
CFG = Config({F})
OBJ.gain = {F}
OBJ.gain = -1.0
OBJ.factor = {F}
OBJ.extra = {F}
OBJ.items = NUMBERS
OBJ.items.append({F})
OBJ.scale = lambda t: t * 7
OBJ.missing = {F}
OBJ = OTHER
OTHER = OBJ
OBJ.note = W
OBJ.__class__ = Base
Base.factor = {F}
Base.shift = {F}
Child.factor = {F}
Child.scale = lambda self, t: t - 1
Base.total = property(lambda self: 9.0)
Base.__len__ = lambda self: 7
Adder.__call__ = lambda self, x: x * 3
SLOT.value = {F}
SLOT = SECOND
ADD.amount = {F}
NET.eval()
NET.train()
NET.depth = 2
NET.drop.p = 0.25
NET.scale = nn.Parameter(torch.full((3,), 2.0))
NET.scale.requires_grad_(False)
NET.linear.weight.data.mul_(2)
NET.linear._forward_hooks[1] = lambda m, a, o: o + 1
NET._forward_pre_hooks[1] = lambda m, a: (a[0] * 2,)
NET.linear.weight = NET.stack[0].weight
NET.total = torch.ones(3)
NET.stack.append(nn.Tanh())
NET.linear = nn.Linear(3, 3)
NET.norm.momentum = 0.3
NET.requires_grad_(False)
power.__defaults__ = (1,)
default.__defaults__ = (2.5,)
default.__kwdefaults__["bias"] = {F}
power.__code__ = (lambda x, n: x * 3).__code__
collect.__defaults__[0].clear()
READ.__closure__[0].cell_contents = {F}
READ.__closure__[1].cell_contents.append(1.0)
READ.__closure__[1].cell_contents[0] = {F}
HALF = functools.partial(default, factor=2.0, bias={F})
produce = lambda items: iter([5.0])
CODES[True] = {F}
CODES[1.0] = {F}
del CODES[2]
SHARED[1] = [2.0]
SHARED[0] = SHARED[1]
WATCHED.value = {F}
Watched.seen.clear()
Watched.__getattribute__ = object.__getattribute__
ITEMS.last = {F}
FUNCTIONS["neg"] = torch.abs
Net.forward = lambda self, x: x * 2
Base.__eq__ = lambda self, other: True
Base.__bool__ = lambda self: False
del Child.__getattr__
Child.__bases__ = (Watched,)
Config.rate = {F}
QUEUE = deque([3.0])
torch.set_default_dtype(torch.float32)
NET.linear.weight.grad = None
PAIR[1] = W
PAIR[1] = W[:]
W = NET.total
OBJ.scale = OTHER.scale
math.sqrt(2.0)
"""

# Arguments of a call: x and y are tensors, k a number, flag a bool, items a list.
TENSORS = """
torch.randn(2, 3)
torch.randn(2, 3)
torch.randn(2, 3)
torch.randn(2, 3)
torch.randn(3, 3)
torch.randn(3, 2).t()
torch.randn(4, 3)[1:3]
torch.randn(2, 6)[:, ::2]
torch.randn(2, 3, dtype=torch.float64)
torch.randn(2, 3).requires_grad_()
torch.randn(2, 3).requires_grad_() * 2
torch.zeros(2, 3)
torch.randn(1, 3).expand(2, 3)
torch.full((2, 3), float("nan"))
"""
SECOND_TENSORS = """
x
x[:]
x.t().t()
x.detach()
W
NET.total
PAIR[1]
NET.linear.weight
x.view_as(x)
torch.ones_like(x)
"""
FLOATS = "1.0 2.0 0.5 -1.0 0.0 -0.0 3 True".split()
STRINGS = "'a' 'b' 'c'".split()
LISTS = "[1.0, 2.0]|[0.5]|NUMBERS|[]|NESTED[0]|[1, 2.0]|OBJ.items".split("|")


def drift(
    chooser: random.Random, arguments: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield arguments in which a number or a size is another each time."""
    x, y, k, *rest = arguments
    size = chooser.random() < 0.5
    for number in range(chooser.randint(5, 8)):
        if size:
            x = y = f"torch.randn({1 + number * 2 % 7}, 3)"
        else:
            k = f"{number - 2}{chooser.choice(['', '.5'])}"
        yield (x, y, k, *rest)


_TENSORS = templates(TENSORS)
_SECOND = templates(SECOND_TENSORS)

STATE = Grammar(
    name="state",
    world=WORLD,
    parameters=(
        Parameter("x", _TENSORS[:6], _TENSORS, 2),
        Parameter("y", [*_TENSORS[:4], *_SECOND], [*_TENSORS, *_SECOND, *_SECOND], 2),
        Parameter("k", FLOATS[:4], FLOATS),
        Parameter("flag", ["True", "False"], ["True", "False", "1"]),
        Parameter("items", LISTS, LISTS),
        Parameter("z", STRINGS, STRINGS),
    ),
    variables={"T": ["x", "y"], "F": ["k"], "B": ["flag"], "N": ["items"], "Z": ["z"]},
    inner={"t": "T"},
    declared="global COUNT, LAST, MODE, TABLE",
    prologue=(),
    expressions={kind: templates(text) for kind, text in EXPRESSIONS.items()},
    fallback={
        "T": "x",
        "S": "torch.tensor(1.5)",
        "M": "(x > 0)",
        "J": "x.long()",
        "U": "(x, y)",
        "L": "PAIR",
        "D": "TABLE",
        "O": "OBJ",
        "C": "ADD",
        "G": "iter(NUMBERS)",
    },
    statements=templates(STATEMENTS),
    compound=COMPOUND,
    results=RESULTS,
    changes=templates(CHANGES),
    literals={"F": FLOATS, "Z": STRINGS, "I": "0 1 2 3".split()},
    drift=drift,
    drifting=0.15,
)
