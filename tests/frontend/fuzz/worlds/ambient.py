"""Owns the state that programs use whose surroundings change: modes, threads, hooks."""

WORLD = """
import contextlib, copy, dataclasses, enum, functools, gc, operator, threading, types
import warnings, weakref, zlib
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

# Torch keeps the answer to what it asks here: modes would see it in the first twin of a
# process alone.
with torch.random.fork_rng():
    pass
torch.default_generator.manual_seed(5)
SCALE = 2.0
STORE = torch.arange(48.0).sin()
ROWS = STORE.view(8, 6)
PART = ROWS[2:5]
COLUMN = ROWS[:, 1]
EVERY = ROWS[::2]
W = torch.randn(6, 6) * 0.3
LOW = torch.randn(6, 6).bfloat16()
TINY = torch.randn(6).half()
BIAS = nn.Parameter(torch.ones(6))
LIKE = torch.zeros(2, dtype=torch.float64)
TABLE = {"b": 1.0, "a": 2.0, 3: 0.5}
SEEN = {1, 2, 5}
LOG = []
NAMES = ["p", "q"]
LOCK = threading.RLock()
LOCAL = threading.local()
_AWAY = threading.local()


class Rate:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return 0.25 if obj is None else obj.__dict__.get(self.name, 1.5)

    def __set__(self, obj, value):
        LOG.append(value)
        obj.__dict__[self.name] = value


class Lazy:
    def __init__(self, function):
        self.function = function

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        value = obj.__dict__["lazy"] = self.function(obj)
        return value


class Counted(type):
    made = 0

    def __call__(cls, *args, **more):
        Counted.made += 1
        return super().__call__(*args, **more)

    def __contains__(cls, item):
        return item in cls.allowed


class Gear(metaclass=Counted):
    allowed = ("a", "b")
    ratio = 1.5
    rate = Rate()

    def __init__(self, k=1):
        self.k = k
        self.rows = ROWS[:2]
        self.items = [1.0]

    @Lazy
    def lazy(self):
        return self.k + 1

    @property
    def twice(self):
        return self.k * 2

    @twice.setter
    def twice(self, value):
        self.k = value / 2

    @classmethod
    def of(cls, k):
        return cls(k)

    def turn(self, h):
        return h * self.k + self.ratio

    def __call__(self, h):
        return h * self.rate

    def __eq__(self, other):
        return type(other) is type(self) and other.k == self.k

    def __hash__(self):
        return hash(type(self))

    def __getattr__(self, name):
        if name == "spare":
            return self.__dict__.get("kept", 3.0)
        raise AttributeError(name)


GEAR = Gear()
OTHER = Gear(2)


@dataclasses.dataclass(order=True)
class Setting:
    rate: float = 0.5
    depth: int = 2
    tags: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Fixed:
    rate: float = 0.5
    rows: object = None


@dataclasses.dataclass(slots=True)
class Slim:
    rate: float = 0.5
    last: object = None


SETTING = Setting()
FIXED = Fixed(0.5, PART)
SLIM = Slim()


class Kind(enum.IntEnum):
    ONE = 1
    TWO = 2


class Tagged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, function, kinds, args=(), kwargs=None):
        if cls.calls is not None:
            cls.calls.append(getattr(function, "__name__", "?"))
            del cls.calls[:-4]
        return super().__torch_function__(function, kinds, args, kwargs or {})


class Duck:
    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, function, kinds, args=(), kwargs=None):
        args = [a.value if isinstance(a, cls) else a for a in args]
        return function(*args, **(kwargs or {})) + 1


DUCK = Duck(torch.ones(6))
MARKED = torch.ones(2, 6).as_subclass(Tagged)


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, k):
        ctx.k = k
        return h * k

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.k * SCALE, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.drop = nn.Dropout(0.5)
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("rows", ROWS[:1], persistent=False)
        self.steps = 0

    def forward(self, h):
        self.steps += 1
        if self.training:
            self.mean.mul_(0.5).add_(h.detach().float().mean(0) * 0.5)
        return self.drop(self.second(self.first(h).relu())) + self.mean


NET = Net()
PLAIN = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
NORM = nn.BatchNorm1d(6)
SMALL = nn.Linear(6, 6).bfloat16()


class Target:
    pass


TARGET = Target()
REF = weakref.ref(TARGET)
_WEAK = weakref.WeakValueDictionary(a=TARGET)
_BY_KEY = weakref.WeakKeyDictionary({TARGET: 2.0})
PROXY = weakref.proxy(GEAR)


def inner(h, k):
    if h.shape[0] > 3:
        return h * k
    return h + k


def outer(h, k):
    LOG.append(k)
    return inner(h, k) - inner(h, 1)


def noting(module, args, result):
    LOG.append(len(args))
    return result + 1


def before(module, args):
    return (args[0] * 2,)


def doubled(grad):
    return grad * 2


@functools.lru_cache(maxsize=2)
def cached(k):
    LOG.append("cached")
    return torch.full((6,), float(k))


@torch.autocast("cpu", dtype=torch.bfloat16)
def lowered(h):
    return h @ W


@torch.no_grad()
def quiet(h):
    return h * SCALE


def raised(h):
    with torch.autocast("cpu", enabled=False):
        return h.float() @ W


def spread(h, *, k=2, kept=[]):
    kept.append(k)
    return h / k + len(kept)


HALF = functools.partial(spread, k=0.5)


def produce(h):
    try:
        for number, row in enumerate(h):
            yield row * number
    finally:
        LOG.append("closed")


def delegating(h):
    got = yield from produce(h[:2])
    return got


def away(function, *args):
    '''Call in another thread.'''
    found = []

    def body():
        try:
            found.append(function(*args))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def checked(h):
    if h.shape[0] > 5:
        raise ValueError("too many rows")
    return h


@contextlib.contextmanager
def noted(value):
    LOG.append(value)
    try:
        yield value
    finally:
        LOG.append(-value)


@contextlib.contextmanager
def default(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def precision(name):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Noting(TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        LOG.append(getattr(function, "__name__", "?"))
        return function(*args, **(kwargs or {}))


class Doubling(TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is torch.Tensor.add else result


class _Dispatching(TorchDispatchMode):
    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        LOG.append(str(function))
        return function(*args, **(kwargs or {}))


def packed(tensor):
    LOG.append("packed")
    return tensor


def unpacked(tensor):
    LOG.append("unpacked")
    return tensor * 2


def saving():
    return torch.autograd.graph.saved_tensors_hooks(packed, unpacked)


def _hidden():
    return [
        ("default dtype", str(torch.get_default_dtype())),
        ("grad", torch.is_grad_enabled()),
        ("made", Counted.made),
        ("cached", tuple(getattr(cached, "cache_info", tuple)())),
        ("local", sorted(vars(LOCAL).items())),
        ("threads", threading.active_count() > 0),
        ("reference", REF() is TARGET),
        ("weak", sorted(map(str, _WEAK))),
    ]
"""
