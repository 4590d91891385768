"""Programs with membership, equality, truth and identity."""

from __future__ import annotations

from .case import Case

BAG = """
class Bag:
    def __init__(self, *items): self.items = list(items)
    def __iter__(self): return iter(self.items)
"""

COMPARISONS = {
    "member: identity through __iter__": Case(
        "P, Q, R = K(1.0), K(2.0), K(3.0); B = Bag(P, Q)",
        "return x * 2 if v in B else x * 3",
        """
        2: _x(), R
        _x(), Q
        _x(), P
        _x(), R
        B.items[1] = R | _x(), R
        _x(), R
        """,
        before=BAG,
    ),
    "member: identity through a generator": Case(
        """
        class T:
            def walk(self):
                yield self.left
                yield self.right
        T0 = T(); T0.left, T0.right = K(1.0), K(2.0); P = K(3.0)
        """,
        "return x * 2 if P in T0.walk() else x * 3",
        """
        2: _x()
        T0.left = P | _x()
        _x()
        T0.left = K(1.0); T0.right = P | _x()
        _x()
        """,
        hits=0,
    ),
    "member: content through __iter__": Case(
        "L = [1.0]; B = Bag(L, [2.0])",
        "return x * 2 if [1.0] in B else x * 3",
        """
        2: _x()
        L[0] = 5.0 | _x()
        _x()
        L[0] = 1.0 | _x()
        _x()
        """,
        before=BAG,
    ),
    "member: content of the sought": Case(
        "L = [1.0]; B = Bag([1.0], [2.0])",
        "return x * 2 if v in B else x * 3",
        """
        2: _x(), [3.0]
        _x(), [1.0]
        _x(), [2.0]
        _x(), [3.0]
        """,
        before=BAG,
    ),
    "member: through __getitem__": Case(
        """
        class Old:
            def __init__(self, *items): self.items = items
            def __getitem__(self, i): return self.items[i]
        P, Q = K(1.0), K(2.0); B = Old(P, K(5.0))
        """,
        "return x * 2 if v in B else x * 3",
        """
        2: _x(), Q
        _x(), P
        _x(), Q
        B.items = (K(1.0), Q) | _x(), Q
        _x(), Q
        """,
    ),
    "member: numbers through a generator": Case(
        """
        class T:
            def walk(self):
                for n in self.items: yield n
        T0 = T(); T0.items = [1.0, 2.0]
        """,
        "return x * 2 if v in T0.walk() else x * 3",
        """
        2: _x(), 2.0
        _x(), 3.0
        T0.items.append(3.0) | _x(), 3.0
        _x(), 3.0
        _x(), 2.0
        """,
    ),
    "member: of a map": Case(
        """
        P, Q = K(1.0), K(2.0); H = NS(p=P); HS = [NS(p=P), NS(p=K(7.0))]
        """,
        "return x * 2 if v in map(lambda h: h.p, HS) else x * 3",
        """
        2: _x(), Q
        _x(), P
        _x(), Q
        HS[1].p = Q | _x(), Q
        _x(), Q
        """,
    ),
    "member: of a list of objects": Case(
        "P, Q, R = K(1.0), K(2.0), K(3.0); L = [P, Q]",
        "return x * 2 if v in L else x * 3",
        """
        2: _x(), R
        _x(), Q
        _x(), P
        L.append(R) | _x(), R
        _x(), R
        L[0] = R; L.pop() | _x(), R
        """,
    ),
    "equality: not implemented": Case(
        """
        class E:
            def __eq__(self, other): return NotImplemented
            __hash__ = None
        P, Q = E(), E()
        """,
        "return x * 2 if v[0] == v[1] else x * 3",
        """
        2: _x(), (P, Q)
        _x(), (P, P)
        _x(), (Q, P)
        _x(), (Q, Q)
        _x(), (P, Q)
        """,
    ),
    "equality: not implemented, unequal": Case(
        """
        class E:
            def __init__(self, n): self.n = n
            def __eq__(self, other):
                if isinstance(other, float): return self.n == other
                return NotImplemented
        P, Q = E(1.0), E(1.0)
        """,
        "return (x * 2 if v[0] != v[1] else x * 3), v[0] == 1.0",
        """
        2: _x(), (P, Q)
        _x(), (P, P)
        Q.n = 2.0 | _x(), (Q, P)
        _x(), (Q, Q)
        _x(), (P, Q)
        """,
    ),
    "equality: gives a list": Case(
        """
        LAST = []
        class E:
            def __eq__(self, other): return self.items
        P = E(); P.items = []
        """,
        "return x * 2 if P == 1 else x * 3",
        """
        2: _x()
        P.items.append(1) | _x()
        _x()
        P.items.clear() | _x()
        _x()
        """,
    ),
    "equality: key of a subclass of str": Case(
        """
        LOG = []
        class N(str):
            def __eq__(self, other):
                LOG.append(1)
                return str.__eq__(self, other)
            __hash__ = str.__hash__
        D = {N('a'): 2.0}
        """,
        "return x * D['a'] + len(LOG)",
        "6: _x()",
    ),
    "equality: key of a subclass of str is looked for": Case(
        """
        LOG = []
        class N(str):
            def __eq__(self, other):
                LOG.append(1)
                return str.__eq__(self, other)
            __hash__ = str.__hash__
        D = {N('a'): 2.0}
        """,
        "return (x * 2 if 'a' in D else x), D.get('a')",
        "6: _x()",
    ),
    "equality: dataclasses": Case(
        """
        @dataclass
        class P:
            a: float
            b: list
        P1, P2 = P(1.0, [1.0]), P(1.0, [1.0])
        """,
        "return x * 2 if P1 == P2 else x * 3",
        """
        2: _x()
        P1.b.append(2.0) | _x()
        _x()
        P2.b.append(2.0) | _x()
        _x()
        P2.a = 1 | _x()
        _x()
        P2.b = P1.b | _x()
        """,
    ),
    "equality: frozen dataclass as a key of a new dict": Case(
        """
        @dataclass(frozen=True)
        class P:
            a: float
            b: str = 'z'
        P1 = P(1.0)
        """,
        """
        d = {P(v): 2.0, P(9.0): 3.0}
        return x * d.get(P1, 5.0) * d[P(9.0)], len(d)
        """,
        """
        2: _x(), 1.0
        _x(), 2.0
        _x(), 9.0
        P1 = P(2.0) | _x(), 2.0
        _x(), 1.0
        """,
    ),
    "truth: by length and by bool": Case(
        """
        class E:
            n = 0
            def __len__(self): return self.n
        P = E()
        """,
        "return x * 2 if P else x * 3",
        """
        2: _x()
        P.n = 1 | _x()
        _x()
        E.__bool__ = lambda s: False | _x()
        _x()
        del E.__bool__ | _x()
        _x()
        """,
    ),
    "truth: bool raises sometimes": Case(
        """
        class E:
            n = 0
            def __bool__(self):
                if self.n > 1: raise ValueError('undecided')
                return self.n == 1
        P = E()
        """,
        "return x * 2 if P else x * 3",
        """
        2: _x()
        P.n = 1 | _x()
        _x()
        P.n = 2 | _x()
        _x()
        P.n = 0 | _x()
        _x()
        """,
    ),
    "truth: of objects that a generator gives": Case(
        """
        class E: pass
        L = [E(), E()]
        C = NS(f=None)
        """,
        "return x * 2 if all(o for o in L) else x * 3",
        """
        2: _x()
        E.__bool__ = lambda s: False | _x()
        _x()
        del E.__bool__; E.__len__ = lambda s: 0 | _x()
        _x()
        del E.__len__ | _x()
        _x()
        """,
    ),
    "truth: of objects that a map gives": Case(
        """
        class E: pass
        L = [E(), E()]
        """,
        "return x * 2 if any(map(lambda o: o, L)) else x * 3",
        """
        2: _x()
        E.__bool__ = lambda s: False | _x()
        _x()
        del E.__bool__ | _x()
        _x()
        """,
    ),
    "identity: attributes that become one": Case(
        "H = NS(a=K(2.0), b=K(2.0))",
        """
        H.a.s = 5.0
        return x * H.b.s, H.a is H.b
        """,
        """
        2: _x()
        H.b = H.a | _x()
        _x()
        H.b = K(2.0) | _x()
        _x()
        H.a, H.b = H.b, H.a; H.b.s = 2.0 | _x()
        """,
    ),
    "identity: of elements that rotate": Case(
        "L = [K(1.0), K(2.0), K(3.0)]; FIRST = L[0]",
        """
        L.append(L.pop(0))
        return x * L[0].s, L[0] is FIRST, L[-1]
        """,
        "9: _x()",
    ),
    "identity: text that is made": Case(
        "H = NS(mode='train', other='train')",
        "return x * 2 if H.mode is H.other else x * 3",
        """
        2: _x()
        H.mode = ''.join(['tr', 'ain']) | _x()
        _x()
        H.other = H.mode | _x()
        _x()
        H.mode = H.other = 'eval' | _x()
        """,
    ),
    "equality: dict of the program, mixed keys": Case(
        """
        LOG = []
        class N(str):
            def __eq__(self, other):
                LOG.append(1)
                return str.__eq__(self, other)
            __hash__ = str.__hash__
        """,
        """
        d = {N('a'): 2.0, 'b': 3.0}
        return x * d['b'] * d['a'] + len(LOG)
        """,
        "6: _x()",
    ),
}
