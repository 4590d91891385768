"""Programs with objects that have several names, or are held by a record."""

from __future__ import annotations

from .case import Case

ALIASES = {
    "list of a class": Case(
        """
        class M: log = [0.0]
        L = [5.0]
        """,
        """
        v.append(1.0)
        return x * len(M.log)
        """,
        """
        _x(), L
        2: M.log[:] = [0.0]; L[:] = [5.0] | _x(), L
        2: M.log[:] = [0.0] | _x(), M.log
        M.log[:] = [0.0] | _x(), L
        """,
    ),
    "dict of a class": Case(
        """
        class M: cfg = {'a': 2.0}
        L = {'a': 2.0}
        """,
        """
        v['a'] = 5.0
        return x * M.cfg['a']
        """,
        """
        2: _x(), L
        2: M.cfg['a'] = 2.0 | _x(), M.cfg
        M.cfg['a'] = 2.0 | _x(), L
        """,
    ),
    "slots of an object of a class": Case(
        """
        class S: __slots__ = ('n',)
        class M: s = S()
        M.s.n = 2.0; B = S(); B.n = 1.0
        """,
        """
        v.n = 5.0
        return x * M.s.n
        """,
        """
        2: _x(), B
        2: M.s.n = 2.0 | _x(), M.s
        M.s.n = 2.0 | _x(), B
        """,
    ),
    "deque and set of a class": Case(
        """
        class M:
            q = deque([1.0]); s = {1}
        Q = deque([1.0]); T = {1}
        """,
        """
        v[0].append(2.0)
        v[1].add(2)
        return x * len(M.q) * len(M.s)
        """,
        """
        2: M.q = deque([1.0]); M.s = {1}; _v = (deque([1.0]), {1}) | _x(), _v
        3: _x(), (deque([1.0]), {1})
        _x(), (M.q, {1})
        _x(), (deque([1.0]), M.s)
        _x(), (M.q, M.s)
        """,
    ),
    "cell of a closure": Case(
        """
        def mk(k):
            n = k
            def get(): return n
            def put(w):
                nonlocal n
                n = w
            return get, put
        G, P = mk(2.0)
        G2, P2 = mk(2.0)
        """,
        """
        v(5.0)
        return x * G()
        """,
        """
        _x(), P2
        2: P(2.0) | _x(), P2
        2: P(2.0) | _x(), P
        P(2.0) | _x(), P2
        """,
    ),
    "globals": Case(
        "G = 2.0",
        """
        v['G'] = 5.0
        return x * G
        """,
        """
        2: _x(), {}
        _x(), globals()
        G = 2.0 | _x(), globals()
        G = 2.0 | _x(), {}
        G = 2.0 | _x(), globals()
        """,
    ),
    "object that is a key": Case(
        """
        class S: __slots__ = ('n',)
        A_ = S(); A_.n = 2.0; B = S(); B.n = 2.0; CACHE = {A_: 1.0}
        """,
        """
        w = CACHE.get(A_)
        v.n = 5.0
        return x * A_.n * w
        """,
        """
        2: _x(), B
        2: A_.n = 2.0 | _x(), A_
        A_.n = 2.0 | _x(), B
        """,
    ),
    "default of a function": Case(
        """
        def g(t, acc=[0.0]): return t * len(acc)
        L = [1.0]
        """,
        """
        v.append(1.0)
        return g(x)
        """,
        """
        _x(), L
        2: L[:] = [1.0] | _x(), L
        _x(), g.__defaults__[0]
        g.__defaults__[0][:] = [0.0] | _x(), g.__defaults__[0]
        g.__defaults__[0][:] = [0.0]; L[:] = [1.0] | _x(), L
        """,
    ),
    "list of an enum member": Case(
        """
        class C(enum.Enum): R = 1
        C.R.log = [0.0]
        L = [0.0]
        """,
        """
        v.append(1.0)
        return x * len(C.R.log)
        """,
        """
        3: C.R.log[:] = [0.0]; L[:] = [0.0] | _x(), L
        3: C.R.log[:] = [0.0] | _x(), C.R.log
        """,
    ),
    "instance dict shared with a class": Case(
        """
        class Borg:
            shared = {'n': 2.0}
        B1 = Borg(); B1.__dict__ = {'n': 2.0}
        """,
        """
        v.n = 5.0
        return x * Borg.shared['n']
        """,
        """
        3: _x(), B1
        B1.__dict__ = Borg.shared; B1.n = 2.0 | _x(), B1
        Borg.shared['n'] = 2.0 | _x(), B1
        """,
    ),
    "list in a constant of a class read twice": Case(
        "class M: rows = ([1.0], [2.0])",
        """
        M.rows[0].append(3.0)
        return x * len(v) * len(M.rows[1])
        """,
        """
        3: M.rows[0][:] = [1.0] | _x(), [1.0]
        2: M.rows[0][:] = [1.0] | _x(), M.rows[0]
        2: M.rows[0][:] = [1.0] | _x(), M.rows[1]
        """,
    ),
    "an object moves between lists": Case(
        "A1 = [K(1.0), K(2.0)]; B1 = []",
        """
        if A1:
            B1.append(A1.pop())
            B1[-1].s += 1.0
        else:
            A1.append(B1.pop(0))
        return x * (B1[-1].s if B1 else 0.5)
        """,
        "9: _x()",
    ),
    "one list under two names": Case(
        "L = [1.0]; H = NS(a=L, b=L)",
        """
        H.a.append(2.0)
        return x * len(H.b)
        """,
        """
        2: _x()
        H.b = [1.0] | _x()
        _x()
        H.b = H.a | _x()
        3: H.a[:] = [1.0] | _x()
        """,
    ),
    "new and old in one result": Case(
        "L = [1.0]; H = NS(l=L)",
        """
        n = [L, H]
        n.append(n)
        H.last = n
        return {'n': n, 'x': x * 2, 'l': L}
        """,
        """
        4: _x()
        L.append(1.0) | _x()
        _x()
        """,
    ),
    "two arguments": Case(
        "P, Q = [1.0], [2.0]",
        """
        v[0].append(x)
        v[1].append(x)
        return x * len(v[0])
        """,
        """
        _x(), (P, Q)
        _x(), (Q, P)
        2: _x(), (P, P)
        2: P.clear(); Q.clear() | _x(), (P, Q)
        P.clear(); Q.clear() | _x(), (P, P)
        """,
    ),
    "an argument is kept": Case(
        "H = NS(l=None, n=0)",
        """
        y = x * (1 if H.l is None else len(H.l))
        H.l = v
        v.append(1.0)
        return y
        """,
        """
        _a = []; _b = [] | _x(), _a
        _x(), _a
        _x(), _b
        _a.clear() | _x(), _a
        _a.clear(); _b.clear() | _x(), _b
        _b.clear() | _x(), _b
        _x(), _b
        """,
    ),
    "views kept": Case(
        "B = torch.zeros(4); H = NS(v=None)",
        """
        y = x + (B[:2] if H.v is None else H.v)
        B.add_(1.0)
        H.v = B[2:]
        return y, H.v
        """,
        """
        4: _x()
        H.v = torch.zeros(2) | _x()
        _x()
        B = torch.ones(4) | _x()
        2: _x()
        """,
    ),
    "attribute of a tensor": Case(
        "T = torch.ones(2)",
        """
        T.n = getattr(T, 'n', 0) + 1
        x.tag = T
        return x * T.n
        """,
        """
        5: _x()
        T = torch.ones(2) | _x()
        _x()
        del T.n | _x()
        _x()
        """,
    ),
    "default and key one object": Case(
        "D = {}; L = [0.0]",
        """
        r = D.setdefault(v, L)
        r.append(1.0)
        return x * len(L), r
        """,
        """
        _x(), 'a'
        _x(), 'b'
        L[:] = [0.0] | _x(), 'a'
        D['a'] = [7.0]; L[:] = [0.0] | _x(), 'a'
        2: D.clear(); L[:] = [0.0] | _x(), 'a'
        """,
    ),
    "arrays and memoryviews": Case(
        "AR = array.array('d', [1.0, 2.0]); MV = memoryview(AR)",
        "return x * AR[0] + len(AR), AR.tolist(), sum(AR)",
        """
        2: _x()
        MV[0] = 5.0 | _x()
        _x()
        MV.release(); AR.append(1.0) | _x()
        _x()
        """,
    ),
    "chain map": Case(
        "B = {'a': 1.0}; T = {}; C = ChainMap(T, B)",
        """
        C['b'] = v
        return x * C['a'] + C['b'], list(C), C.maps[0] is T
        """,
        """
        2: _x(), 1.0
        T['a'] = 9.0 | _x(), 1.0
        C.maps.reverse() | _x(), 1.0
        2: _x(), 2.0
        """,
    ),
    "ordered dict as a cache": Case(
        "C = OrderedDict()",
        """
        if v in C:
            C.move_to_end(v)
        else:
            C[v] = x * 2
            if len(C) > 2:
                C.popitem(last=False)
        return C[v] + len(C), list(C)
        """,
        """
        _x(), 'a'
        _x(), 'b'
        _x(), 'a'
        _x(), 'c'
        _x(), 'b'
        _x(), 'a'
        _x(), 'b'
        2: _x(), 'c'
        _x(), 'a'
        2: C.clear() | _x(), 'a'
        """,
    ),
    "appended, then looked at": Case(
        "L = [1.0, 2.0]",
        """
        L.append(v)
        a = L[-1]
        b = L[0]
        L.extend([a, b])
        return x * len(L) + L[-1], L[2:4]
        """,
        """
        3: L[:] = [1.0, 2.0] | _x(), 3.0
        L[:] = [1.0] | _x(), 3.0
        L[:] = [5.0, 2.0] | _x(), 3.0
        L[:] = [1.0, 2.0] | _x(), 4.0
        """,
    ),
    "list of tensors stacked": Case(
        "L = [torch.zeros(2)]",
        """
        L.append(x)
        s = torch.stack(L).sum(0)
        L[0] = s
        return s * len(L)
        """,
        """
        3: _x()
        2: del L[1:] | _x()
        L[0] = L[-1] | _x()
        """,
    ),
    "context variable": Case(
        "V = contextvars.ContextVar('V', default=1.0)",
        """
        t = V.set(V.get() + v)
        y = x * V.get()
        if v > 2:
            V.reset(t)
        return y
        """,
        """
        2: _x(), 1.0
        2: V.set(1.0) | _x(), 1.0
        2: _x(), 3.0
        """,
    ),
}
