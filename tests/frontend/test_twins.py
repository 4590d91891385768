"""Programs in which a recording once went wrong without a word, beside eager twins."""

from __future__ import annotations

from dataclasses import dataclass

import pytest


@dataclass
class Case:
    """A program `f` and its calls, each "changes before it | arguments".

    Attributes:
        hits: Number of calls that a record must answer.
    """

    setup: str
    program: str
    calls: list[str]
    hits: int | None = None


X = "torch.tensor([1.0, 2.0])"
CASES = {
    "attribute of a new tensor": Case(
        "", "y = x * 2; y.tag = 5; return y", [X] * 3, hits=2
    ),
    "key deleted and set again": Case(
        "D = {}",
        "D['a'] = 1; D['b'] = 2; del D['a']; D['a'] = 3; return x + 1",
        [X, f"D.clear() | {X}", X],
        hits=2,
    ),
    "key set and deleted": Case(
        "D = {}",
        "D['a'] = 1; del D['a']; return x + 1",
        [X, f"D['a'] = 7 | {X}"],
        hits=1,
    ),
    "key popped and set": Case(
        "D = {'a': 1}",
        "D.pop('a', None); D['a'] = 2; return x + 1",
        [X, f"D['n'] = 1 | {X}", f"D.clear() | {X}"],
    ),
    "dict united in place": Case(
        "D = {'c': 1}\nE = {'a': 1.0}",
        "global D; D |= E; return x + 1",
        [X, X, f"E['a'] = 2.0 | {X}"],
    ),
    "slots of two objects that become one": Case(
        "class S:\n    __slots__ = ('v',)\n"
        "A = S(); A.v = 2; B = S(); B.v = 2; C = S(); C.v = 2",
        "a, b = v; a.v = 5; return x * b.v",
        [f"{X}, (A, B)", f"{X}, (A, B)", f"{X}, (C, C)"],
    ),
    "identity of numbers": Case(
        "A = int('1000')",
        "return x if v[0] is v[1] else -x",
        [f"{X}, (A, A)", f"{X}, (A, A)", f"{X}, (A, int('1000'))"],
        hits=1,
    ),
    "identity of strings": Case(
        "A = 'abc!'",
        "return x if v[0] is v[1] else -x",
        [f"{X}, (A, A)", f"{X}, (A, A)", f"{X}, (A, ''.join(['abc', '!']))"],
        hits=1,
    ),
    "nan as a key": Case(
        "N = float('nan'); D = {N: 5.0}",
        "return x * D.get(v, 2.0)",
        [f"{X}, N", f"{X}, N", f"{X}, float('nan')"],
        hits=1,
    ),
    "nan in a list": Case(
        "N = float('nan'); L = [N]",
        "return (x if v in L else -x), L == [v], L.count(v)",
        [f"{X}, N", f"{X}, N", f"{X}, float('nan')"],
        hits=1,
    ),
    "zeros of both signs as keys": Case(
        "", "return list(v)", [f"{X}, {{0.0: 1}}"] * 2 + [f"{X}, {{-0.0: 1}}"], hits=1
    ),
    "keys of a subclass of str": Case(
        "class T(str): pass",
        "return list(v)",
        [f"{X}, {{'a': 1}}"] * 2 + [f"{X}, {{T('a'): 1}}"],
        hits=1,
    ),
    "order of a set": Case(
        "", "return list(v)", [f"{X}, {{8, 0}}"] * 2 + [f"{X}, {{0, 8}}"], hits=1
    ),
    "order of a set that was written": Case(
        "S = {8, 0, 16}",
        "S.add(24); S.discard(8); S.add(v); return x + 1",
        [f"{X}, 1", f"S.clear(); S.update([8, 0, 16]) | {X}, 1", f"{X}, 1"],
    ),
    "set cleared and filled": Case(
        "S = {1}", "S.clear(); S.add(9); S.add(1); return list(S)", [X] * 3
    ),
    "place in the storage": Case(
        "B = torch.arange(4.0)",
        "return x * x.storage_offset() + x[1:].storage_offset()",
        ["B[0:2]", "B[0:2]", "B[1:3]"],
        hits=1,
    ),
    "place counted from the begin of the storage": Case(
        "B = torch.arange(6.0)",
        "return torch.as_strided(x, (2,), (1,), 1) * 2, x.as_strided((1,), (1,))",
        ["B[0:2]", "B[0:2]", "B[2:4]", "B[2:4]"],
        hits=2,
    ),
    "hash of a tensor": Case(
        "A = torch.ones(2)",
        "return (x if hash(x) == hash(v) else -x)",
        [f"{X}, {X}"] * 2 + ["A, A"] * 2,
    ),
    "hash of a tuple with a tensor": Case(
        "A = torch.ones(2)",
        "return x + 1, hash((x, (1,))) == hash((v, (1,))), x.__hash__() == hash(v)",
        [f"{X}, {X}"] * 2 + ["A, A"] * 2,
    ),
    "new plain objects": Case(
        "R = []", "R.append(object()); return object(), x + 1", [X] * 3, hits=2
    ),
    "exception after a side effect": Case(
        "L = []",
        "L.append(1); return x[v] + 1",
        [f"{X}, torch.tensor([0])"] * 2 + [f"{X}, torch.tensor([9])", f"{X}, L"],
    ),
    "exception inside of no_grad": Case(
        "",
        "with torch.no_grad():\n        y = x[v] + 1\n    return y * x",
        [f"{X}.requires_grad_(), torch.tensor([{i}])" for i in (0, 1, 9, 1)],
        hits=3,
    ),
    "exception of an unused operator": Case(
        "",
        "y = x[v]; return x + 1",
        [f"{X}, torch.tensor([0])"] * 2 + [f"{X}, torch.tensor([9])"],
    ),
    "gradients of new tensors in no_grad": Case(
        "",
        "with torch.no_grad():\n"
        "        y = torch.ones(2, requires_grad=True) * 2\n    return y",
        [X] * 3,
        hits=2,
    ),
    "registered abstract class": Case(
        "class A(abc.ABC): pass\nclass C: pass\nc = C()",
        "return x if isinstance(c, A) else -x",
        [X, X, f"A.register(C) | {X}"],
        hits=1,
    ),
    "annotations of a new function": Case(
        "", "\n    def g(a: int) -> str: return a\n    return g", [X] * 3, hits=2
    ),
    "partial call": Case(
        "def g(*a, **k): return a, k",
        "return functools.partial(g, x, k=[x], m=2), x + 1",
        [X] * 3,
    ),
    "finalizer of a local object": Case(
        "L = []\nclass C:\n    def __del__(self): L.append(1)",
        "c = C(); del c; return x * len(L)",
        [X] * 3,
        hits=0,
    ),
    "finalizer of an element": Case(
        "L = []\nclass C:\n    def __del__(self): L.append(1)\nB = [C(), C()]",
        "B.pop(); return x * len(L)",
        [X] * 2,
        hits=0,
    ),
    "finalizer of a replaced attribute": Case(
        "L = []\nclass C:\n    def __del__(self): L.append(1)\n"
        "class H: pass\nh = H(); h.c = C()",
        "h.c = None; return x * len(L)",
        [X] * 2,
    ),
    "end of a generator in a loop": Case(
        "L = []\ndef g():\n    try: yield 1\n    finally: L.append(1)",
        "\n    for a in g(): break\n    return x * len(L)",
        [X] * 3,
    ),
    "end of a generator in a called function": Case(
        "L = []\ndef g():\n    try: yield 1\n    finally: L.append(1)\n"
        "def h():\n    z = g(); next(z)",
        "h(); return x * len(L)",
        [X] * 3,
    ),
    "condition on memory written through another argument": Case(
        "B = torch.ones(4)",
        "x.add_(1); return v if v.sum() > 3 else -v",
        [f"{X}, B[2:4]", f"{X}, B[2:4]", "B[0:2], B[0:2]"],
    ),
    "slices of other numbers": Case(
        "",
        "y = x[v]; x[v] = 5.0; return y",
        [f"{X}, slice(0, 1)", f"{X}, slice(0, 1)", f"{X}, slice(0, 2)"],
        hits=1,
    ),
    "weak reference to what the run makes": Case(
        "import weakref\nclass C: pass",
        "c = C(); r = weakref.ref(c); del c; return x if r() is None else -x",
        [X] * 3,
    ),
    "order of an ordered dict": Case(
        "D = collections.OrderedDict(a=1, b=2)",
        "D.move_to_end('a'); return list(D), collections.OrderedDict(D), x + 1",
        [X, X, f"D.move_to_end('b') | {X}", X, f"D.move_to_end('b') | {X}"],
    ),
    "order of an ordered dict that is only read": Case(
        "D = collections.OrderedDict(a=1, b=2)",
        "return list(D), list(D.values()), [*D.items()], {**D}, x + 1",
        [X, X, f"D.move_to_end('a') | {X}"],
        hits=1,
    ),
    "constants of the code": Case(
        "L = []",
        "L.append((1, (2, 3))); L.append(lambda k=(1, 2): k); return L[0]",
        [X] * 3,
    ),
    "weak reference to what the run removes": Case(
        "import weakref\nclass C: pass\nL = [C()]; r = weakref.ref(L[0])",
        "L.pop(); return x if r() is None else -x",
        [X],
    ),
    "weak reference after a number was replaced": Case(
        "import weakref\nclass C: s = 2.0\nc = C(); r = weakref.ref(c)\n"
        "n = [0]; d = {'a': 1}",
        "n[0] = 1; d['b'] = 2; return x if r() is None else x * r().s",
        [X, X, f"globals().pop('c') | {X}"],
        hits=1,
    ),
    "weak reference after its object was moved": Case(
        "import weakref\nclass C: pass\nclass B: pass\nb = B(); b.c = C()\n"
        "r = weakref.ref(b.c)",
        "a = [b.c]; b.c = None; a.clear(); return x if r() is None else -x",
        [X],
    ),
    "class of a descriptor": Case(
        "class D:\n    def __get__(s, o, t=None): return 2.0\n"
        "class C:\n    d = D()\nc = C(); c.d = 3.0",
        "return c.d * x",
        [X, X, f"D.__set__ = lambda s, o, v: None | {X}"],
        hits=1,
    ),
    "hooks that a class gets": Case(
        "class C: pass\nc = C(); c.a = 2.0",
        "return x * c.a, hasattr(c, 'b')",
        [
            *(X, X),
            f"C.__getattr__ = lambda s, n: 1 | {X}",
            f"C.__getattribute__ = lambda s, n: 5.0 | {X}",
        ],
        hits=1,
    ),
    "end of a generator while a number is followed": Case(
        "L = []\nN = [1]\ndef g():\n    try: yield 1\n    finally: L.append(1)",
        "\n    for a in g():\n        N[0] += 1\n        break\n    return x * N[0]",
        [X] * 6,
    ),
    "aliases of one memory": Case(
        "B = torch.arange(4.0)",
        "x.add_(1); return v * 2",
        ["B[0:2], B[2:4]"] * 2 + ["B[0:2], B[1:3]", "B[0:2], B[0:2]"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_are_those_of_the_twin(name, beside_twin):
    case = CASES[name]
    difference, traced = beside_twin(case.setup, case.program, case.calls)
    assert difference is None, f"{difference}\n{traced.explain()}"
    if case.hits is not None:
        assert traced.stats()["hits"] == case.hits, traced.explain()


def test_a_list_that_holds_itself(beside_twin):
    program = "L.append(min(L, L)); return x + len(L)"
    difference, traced = beside_twin("L = []", program, [X, X, f"L.clear() | {X}", X])
    assert difference is None, f"{difference}\n{traced.explain()}"
    assert not traced.breaks
