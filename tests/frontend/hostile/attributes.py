"""Programs with attributes and modules."""

from __future__ import annotations

from .case import Case

MODULE = """
torch.manual_seed(3)
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('b', torch.zeros(2))
        self.w = nn.Parameter(torch.ones(2))
        self.l1, self.l2 = nn.Linear(2, 2), nn.Linear(2, 2)
        self.ls = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.log = []
H = M()
"""

ATTRIBUTES = {
    "attribute: of the class, then of the instance": Case(
        """
        class M: n = 0
        H = M()
        """,
        """
        H.n += 1
        return x * H.n
        """,
        """
        3: _x()
        del H.n | _x()
        _x()
        M.n = 10; del H.n | _x()
        3: _x()
        """,
    ),
    "attribute: property with a setter": Case(
        """
        class M:
            def __init__(self): self._v = []
            @property
            def v(self): return self._v[-1] if self._v else 0.0
            @v.setter
            def v(self, n): self._v.append(n)
        H = M()
        """,
        """
        H.v = H.v + 1.0
        return x * H.v
        """,
        """
        5: _x()
        H._v.clear() | _x()
        3: _x()
        """,
    ),
    "attribute: data descriptor": Case(
        """
        class D_:
            def __set_name__(self, o, n): self.n = '_' + n
            def __get__(self, o, t=None):
                return self if o is None else o.__dict__.get(self.n, 1.0)
            def __set__(self, o, v): o.__dict__[self.n] = v * 2.0
        class M: a = D_()
        H = M()
        """,
        """
        H.a = H.a + 0.5
        return x * H.a
        """,
        """
        4: _x()
        H._a = 3.0 | _x()
        _x()
        vars(H)['a'] = 100.0 | _x()
        _x()
        del H._a | _x()
        _x()
        """,
    ),
    "attribute: __setattr__ that counts": Case(
        """
        class M:
            count = 0
            def __setattr__(self, n, v):
                M.count = M.count + 1
                object.__setattr__(self, n, v)
        H = M()
        """,
        """
        H.a = v
        H.b = H.a * 2
        return x * M.count
        """,
        """
        3: _x(), 1.0
        4: M.count = 0 | _x(), 1.0
        M.count = 0 | _x(), 2.0
        """,
    ),
    "attribute: slots deleted and set": Case(
        """
        class S:
            __slots__ = ('a', 'b')
        H = S(); H.a = 1.0
        """,
        """
        if hasattr(H, 'b'):
            H.a += H.b
            del H.b
        else:
            H.b = H.a
        return x * H.a
        """,
        "10: _x()",
    ),
    "attribute: slots of base and class": Case(
        """
        class P:
            __slots__ = ('a',)
        class Q(P):
            __slots__ = ('a', '__dict__')
        H = Q(); H.a = 1.0; P.a.__set__(H, 5.0)
        """,
        """
        H.a = H.a + 1.0
        H.c = H.a
        return x * H.a, copy.copy(H)
        """,
        """
        4: _x()
        4: H.a = 1.0 | _x()
        """,
    ),
    "attribute: shared instance dict": Case(
        """
        class Borg:
            state = {}
            def __init__(self): self.__dict__ = Borg.state
        B1, B2 = Borg(), Borg(); B1.n = 1.0; C_ = K(1.0); C_.n = 1.0
        """,
        """
        v[0].n = v[0].n + 1.0
        return x * v[1].n
        """,
        """
        2: _x(), (B1, B2)
        _x(), (B1, C_)
        B1.n = 1.0 | _x(), (B1, C_)
        B1.n = 1.0 | _x(), (B1, B2)
        B1.n = 1.0 | _x(), (B2, B1)
        B1.n = 1.0 | _x(), (C_, B1)
        _x(), (B1, C_)
        """,
    ),
    "attribute: dict of the instance is replaced": Case(
        "H = K(2.0); D1 = {'s': 3.0}",
        """
        H.s = H.s + 1.0
        return x * H.s
        """,
        """
        2: _x()
        H.__dict__ = D1 | _x()
        _x()
        D1['s'] = 9.0 | _x()
        _x()
        H.__dict__ = {'s': 1.0} | _x()
        _x()
        """,
    ),
    "attribute: class of the instance is replaced": Case(
        """
        class P:
            def f(self, x): return x * self.s
        class Q(P):
            def f(self, x): return x + self.s
        H = P(); H.s = 2.0
        """,
        "return H.f(x)",
        """
        2: _x()
        H.__class__ = Q | _x()
        _x()
        H.__class__ = P | _x()
        _x()
        H.f = lambda x: x * 0 | _x()
        _x()
        del H.f; P.f = Q.f | _x()
        _x()
        """,
    ),
    "attribute: globals come and go": Case(
        "N = 2.0",
        """
        global N, M
        try:
            N
        except NameError:
            N = 1.0
        M = N
        del N
        return x * M
        """,
        """
        3: _x()
        3: N = 3.0 | _x()
        2: _x()
        """,
    ),
    "attribute: a builtin is hidden": Case(
        "L = [1.0, 2.0]",
        "return x * len(L) + max(L)",
        """
        2: _x()
        len = lambda s: 7 | _x()
        _x()
        del len | _x()
        _x()
        max = min | _x()
        _x()
        del max | _x()
        _x()
        """,
    ),
    "module: buffer registered in every call": Case(
        "",
        """
        H.register_buffer('c', x * 2)
        return H.c + H.b
        """,
        """
        2: _x()
        del H.c | _x(2)
        _x(3)
        H.b.add_(1.0) | _x()
        _x()
        """,
        before=MODULE,
    ),
    "module: buffer in place and kept": Case(
        "",
        """
        H.b += x
        H.log.append(H.b)
        return H.b * H.w
        """,
        """
        4: _x()
        H.b = torch.ones(2) | _x()
        H.log.clear() | _x()
        2: _x()
        """,
        before=MODULE,
    ),
    "module: children exchanged": Case(
        "",
        """
        H.l1, H.l2 = H.l2, H.l1
        return H.l2(H.l1(x))
        """,
        """
        6: _x()
        H.l1 = H.l2 | _x()
        2: _x()
        """,
        before=MODULE,
    ),
    "module: list rotates": Case(
        "",
        """
        H.ls.append(H.ls.pop(0))
        return H.ls[0](x)
        """,
        "6: _x()",
        before=MODULE,
    ),
    "module: parameter tied by the caller": Case(
        "",
        "return x * H.w + H.l1.bias",
        """
        2: _x()
        H.l1.bias = H.w | _x()
        _x()
        H.w.data.add_(1.0) | _x()
        H.w = nn.Parameter(torch.zeros(2)) | _x()
        _x()
        """,
        before=MODULE,
    ),
    "module: parameter deleted and registered": Case(
        "",
        """
        w = H.w
        del H.w
        H.register_parameter('w', w)
        return x * H.w, list(H._parameters)
        """,
        """
        4: _x()
        H.extra = nn.Parameter(torch.ones(2)) | _x()
        2: _x()
        """,
        before=MODULE,
    ),
    "module: counters in nested modules": Case(
        "H.l1.n = 0",
        """
        H.l1.n += 1
        H.l2.n = H.l1.n * 2
        return H.l1(x) * H.l2.n
        """,
        """
        7: _x()
        H.l1, H.l2 = H.l2, H.l1 | _x()
        2: _x()
        """,
        before=MODULE,
    ),
    "module: written buffer that another name holds": Case(
        "ALIAS = H.b",
        """
        H.b.add_(x)
        return ALIAS * 2
        """,
        """
        3: _x()
        ALIAS = torch.zeros(2) | _x()
        _x()
        ALIAS = H.b[:] | _x()
        _x()
        ALIAS = H.b | _x()
        """,
        before=MODULE,
    ),
}
