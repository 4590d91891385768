"""Programs with keys of dicts that are objects."""

from __future__ import annotations

from .case import Case

NOISY = """
LOG = []
class E:
    def __getattr__(self, n):
        LOG.append(n)
        raise AttributeError(n)
    def __repr__(self):
        LOG.append('repr')
        return 'E'
    __str__ = __repr__
"""

KEYS = {
    "attributes of objects": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0, K2: 2.0}",
        """
        for k in D:
            x = x * k.s + D[k]
        return x
        """,
        """
        2: _x()
        K1.s = 5.0 | _x()
        _x()
        K2.s = -1.0 | _x()
        _x()
        D[K1] = 9.0 | _x()
        _x()
        """,
    ),
    "items of objects": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0, K2: 2.0}",
        """
        for k, v in D.items():
            x = x * k.s + v
        return x
        """,
        """
        2: _x()
        K1.s = 5.0 | _x()
        _x()
        K2.s = -1.0 | _x()
        _x()
        """,
    ),
    "functions with closures": Case(
        """
        def mk():
            n = 2.0
            def f(t): return t * n
            def s(v):
                nonlocal n
                n = v
            return f, s
        F, S = mk()
        D = {F: 1.5}
        """,
        """
        for g, w in D.items():
            x = g(x) * w
        return x
        """,
        """
        2: _x()
        S(3.0) | _x()
        _x()
        F.__defaults__ = None | _x()
        _x()
        """,
    ),
    "functions with defaults": Case(
        """
        def F(t, k=2.0): return t * k
        D = {F: 1.5}
        """,
        """
        for g in D:
            x = g(x) * D[g]
        return x
        """,
        """
        2: _x()
        F.__defaults__ = (3.0,) | _x()
        _x()
        F.__defaults__ = (4.0,) | _x()
        _x()
        """,
    ),
    "a key is returned": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0, K2: 2.0}",
        """
        most = max(D, key=D.get)
        return x * 2, next(iter(D)), most, list(D), sorted(D, key=lambda k: k.s)
        """,
        "6: _x()",
    ),
    "popitem": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0, K2: 2.0}",
        """
        k, v = D.popitem()
        return x * v, k
        """,
        """
        _x()
        6: D[K2] = 2.0 | _x()
        """,
    ),
    "popitem of attributes": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0, K2: 2.0}",
        """
        k, v = D.popitem()
        return x * v * k.s
        """,
        """
        _x()
        2: D[K2] = 2.0 | _x()
        3: D[K2] = 2.0; K2.s = 7.0 | _x()
        """,
    ),
    "tuples with objects": Case(
        "K1 = K(2.0); D = {(K1, 1.5): 2.0}",
        """
        for (k, n), v in D.items():
            x = x * k.s * n + v
        return x
        """,
        """
        2: _x()
        K1.s = 5.0 | _x()
        _x()
        K1.s = 6.0 | _x()
        _x()
        """,
    ),
    "sorted by attribute": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0, K2: 2.0}",
        """
        least, most = sorted(D, key=lambda k: k.s)[0], min(D, key=lambda k: -k.s)
        return x * least.s * D[[*D][0]] + most.s
        """,
        """
        2: _x()
        K1.s = 5.0 | _x()
        _x()
        K2.s = 6.0 | _x()
        _x()
        """,
    ),
    "plain objects returned": Case(
        "S = object(); D = {S: 1.0}",
        "return x * 2, list(D), D.copy()",
        "6: _x()",
    ),
    "modules": Case(
        """
        torch.manual_seed(1)
        M1, M2 = nn.Linear(2, 2), nn.Linear(2, 2)
        D = {M1: 1.5, M2: 0.5}
        """,
        """
        for m, w in D.items():
            x = m(x) * w
        return x
        """,
        """
        2: _x()
        M1.weight.data.mul_(2.0) | _x()
        M1.weight = nn.Parameter(torch.eye(2)) | _x()
        _x()
        M1.bias.data.zero_() | _x()
        _x()
        """,
    ),
    "enum members": Case(
        """
        class C(enum.Enum):
            R = 1
            B = 2
        C.R.w = 2.0
        C.B.w = 3.0
        D = {C.R: 1.0, C.B: 2.0}
        """,
        """
        for c in D:
            x = x * c.w + D[c]
        return x
        """,
        """
        2: _x()
        C.R.w = 5.0 | _x()
        _x()
        C.B.w = 7.0 | _x()
        _x()
        """,
    ),
    "written to another dict": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0, K2: 2.0}; OUT = {}",
        """
        for k in D:
            OUT[k] = k.s
        return x * 2
        """,
        """
        3: _x()
        OUT.clear() | _x()
        K1.s = 9.0 | _x()
        2: _x()
        """,
    ),
    "copies of the dict": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0, K2: 2.0}",
        """
        return x * 2, dict(D), {**D}, D.copy(), dict.fromkeys(D), [k.s for k in dict(D)]
        """,
        """
        2: _x()
        K1.s = 3.5 | _x()
        2: _x()
        """,
    ),
    "keys of two dicts": Case(
        "K1, K2 = K(2.0), K(3.0); D = {K1: 1.0}; E = {K1: 2.0}",
        "return x * sum(k.s for k in D if k in E)",
        """
        2: _x()
        E.clear(); E[K2] = 1.0 | _x()
        _x()
        E[K1] = 2.0; K1.s = 4.0 | _x()
        2: _x()
        """,
    ),
    "OrderedDict": Case(
        """
        K1, K2 = K(2.0), K(3.0); D = OrderedDict([(K1, 1.0), (K2, 2.0)])
        """,
        """
        for k in D:
            x = x * k.s + D[k]
        return x
        """,
        """
        2: _x()
        K1.s = 5.0 | _x()
        _x()
        D.move_to_end(K1) | _x()
        _x()
        """,
    ),
    "key of an instance dict": Case(
        "H = NS(t={K(2.0): 1.0}); K1 = next(iter(H.t))",
        """
        (k,) = H.t
        k.s += 1.0
        return x * k.s
        """,
        "8: _x()",
    ),
    "Counter of objects": Case(
        "K1, K2 = K(2.0), K(3.0); D = Counter([K1, K1, K2])",
        "return x * D.most_common(1)[0][0].s",
        """
        2: _x()
        K1.s = 5.0 | _x()
        _x()
        D[K2] += 5 | _x()
        _x()
        K2.s = 1.5 | _x()
        _x()
        """,
    ),
    "names: object of a class": Case(
        """
        class M: e = E()
        M.e.n = 2.0
        """,
        "return x * M.e.n",
        """
        2: _x()
        M.e.n = 3.0 | _x()
        _x()
        M.e = E(); M.e.n = 1.0 | _x()
        _x()
        """,
        before=NOISY,
    ),
    "names: object as a key": Case(
        "P = E(); D = {P: 2.0}",
        "return x * D[P]",
        """
        2: _x()
        D[P] = 3.0 | _x()
        _x()
        D.clear(); D[P] = 5.0 | _x()
        _x()
        """,
        before=NOISY,
    ),
    "names: object as a new key": Case(
        "P = E(); D = {}",
        """
        D[P] = D.get(P, 0.0) + 1.0
        return x * D[P]
        """,
        """
        6: _x()
        D.clear() | _x()
        _x()
        """,
        before=NOISY,
    ),
}
