"""Programs with closures, copies, weak references, exceptions."""

from __future__ import annotations

from .case import Case

FUNCTIONS = {
    "closure: made in one call, called in the next": Case(
        "H = NS(f=None)",
        """
        y = x if H.f is None else H.f(x)
        H.f = lambda t, k=v: t * k + v
        return y
        """,
        """
        _x(), 1.0
        _x(), 2.0
        _x(), 3.0
        _x(), 4.0
        3: _x(), 5.0
        _x(), 6.0
        _x(), 7.0
        """,
    ),
    "closure: a pair that shares a cell": Case(
        "H = NS(get=None, put=None)",
        """
        if H.get is None:
            n = v
            def get(): return n
            def put(w):
                nonlocal n
                n = w
            H.get, H.put = get, put
        H.put(H.get() + 1.0)
        return x * H.get()
        """,
        """
        5: _x(), 1.0
        H.put(10.0) | _x(), 1.0
        3: H.get = None | _x(), 3.0
        _x(), 3.0
        """,
    ),
    "closure: mutated default": Case(
        """
        def g(t, acc=[]):
            acc.append(t)
            return sum(acc)
        L = []
        """,
        "return g(x) + g(x, L)",
        """
        3: _x()
        3: g.__defaults__[0].clear(); L.clear() | _x()
        L = g.__defaults__[0] | _x()
        2: L.clear() | _x()
        """,
    ),
    "closure: variable that is deleted": Case(
        """
        def mk():
            n = 1.0
            def f(t):
                nonlocal n
                try:
                    t = t * n
                    del n
                except NameError:
                    n = 5.0
                return t
            return f
        F = mk()
        """,
        "return F(x)",
        "8: _x()",
    ),
    "closure: late binding": Case(
        "FS = []",
        """
        if not FS:
            FS.extend([lambda t: t * i for i in range(3)])
        return sum(f(x) for f in FS)
        """,
        """
        4: _x()
        2: FS.clear() | _x()
        2: _x()
        """,
        hits=0,
    ),
    "closure: bound methods kept": Case(
        """
        class C:
            def __init__(self, k): self.k = k
            def f(self, t): return t * self.k
        H = NS(m=None)
        """,
        """
        y = x if H.m is None else H.m(x)
        H.m = C(v).f
        return y
        """,
        """
        _x(), 1.0
        _x(), 2.0
        _x(), 3.0
        _x(), 4.0
        3: _x(), 5.0
        _x(), 6.0
        _x(), 7.0
        """,
    ),
    "copy: shallow, list shared": Case(
        "H = K(2.0); H.l = [1.0]",
        """
        c = copy.copy(H)
        c.l.append(v)
        c.s = v
        return x * H.s * len(H.l), c
        """,
        """
        3: H.l[:] = [1.0] | _x(), 1.0
        _x(), 2.0
        H.l = [] | _x(), 3.0
        _x(), 4.0
        """,
    ),
    "copy: deep, aliases": Case(
        "L = [1.0]; H = NS(a=L, b=L, t=torch.ones(2))",
        """
        c = copy.deepcopy(H)
        c.a.append(v)
        c.t.add_(1.0)
        return x * len(c.b) + c.t, c.a is c.b, c, H.t
        """,
        """
        3: _x(), 1.0
        H.b = [1.0] | _x(), 1.0
        _x(), 2.0
        H.t = H.t[:1] | _x(), 1.0
        """,
    ),
    "copy: pickled": Case(
        "H = NS(a=[1.0], n=2)",
        """
        c = pickle.loads(pickle.dumps(H))
        c.a.append(v)
        return x * sum(c.a) * c.n, c
        """,
        """
        3: _x(), 1.0
        H.n = 3 | _x(), 1.0
        H.a.append(5.0) | _x(), 1.0
        """,
    ),
    "copy: of containers": Case(
        """
        O = OrderedDict(a=[1.0])
        Q = deque([[1.0]], 2)
        D = defaultdict(list, k=[1.0])
        """,
        """
        o, q, d = copy.copy(O), copy.copy(Q), copy.copy(D)
        o['b'] = v
        q.append(v)
        d['z'].append(v)
        q[0].append(v)
        return x * len(o), o, q, d
        """,
        """
        4: Q[0][:] = [1.0] | _x(), 1.0
        O.move_to_end('a'); Q[0][:] = [1.0] | _x(), 1.0
        _x(), 1.0
        """,
    ),
    "copy: with hooks": Case(
        """
        class P:
            def __init__(self): self.n = 1
            def __copy__(self):
                self.n += 1
                return self
            def __deepcopy__(self, memo):
                q = P(); q.n = self.n * 10
                return q
        H = P()
        """,
        """
        a, b = copy.copy(H), copy.deepcopy([H, H])
        return x * H.n, a is H, b
        """,
        """
        4: _x()
        3: H.n = 1 | _x()
        """,
    ),
    "copy: with state methods": Case(
        """
        class P:
            def __init__(self): self.n = 1; self.cache = [1]
            def __getstate__(self): return {'n': self.n}
            def __setstate__(self, s): self.n = s['n'] + 1; self.cache = []
        H = P()
        """,
        """
        c = copy.copy(H)
        H.n = c.n
        return x * c.n, c
        """,
        """
        4: _x()
        3: H.n = 1 | _x()
        """,
    ),
    "weak: the object dies between calls": Case(
        "H = NS(o=K(2.0)); R = weakref.ref(H.o)",
        """
        o = R()
        return x if o is None else x * o.s
        """,
        """
        2: _x()
        H.o.s = 4.0 | _x()
        _x()
        H.o = None | _x()
        _x()
        H.o = K(7.0); R = weakref.ref(H.o) | _x()
        _x()
        """,
    ),
    "raises: after a write": Case(
        "H = NS(n=0, log=[])",
        """
        H.n += 1
        H.log.append(v)
        if v > 2:
            raise ValueError(f'too large: {v}')
        return x * H.n
        """,
        """
        2: _x(), 1
        _x(), 3
        _x(), 1
        _x(), 2
        _x(), 3
        2: _x(), 1
        3: H.n = 0; H.log.clear() | _x(), 1
        """,
    ),
    "raises: finally writes": Case(
        "H = NS(n=0)",
        """
        try:
            if v > 2:
                raise KeyError(v)
            return x * H.n
        finally:
            H.n += v
        """,
        """
        2: _x(), 1
        _x(), 3
        _x(), 1
        _x(), 2
        _x(), 3
        2: _x(), 1
        """,
    ),
    "raises: key that is missing": Case(
        "D = {'a': 1.0}",
        """
        try:
            n = D[v]
        except KeyError as e:
            n = len(e.args[0]) * 1.0
            D[v] = n
        return x * n
        """,
        """
        _x(), 'a'
        2: _x(), 'bb'
        2: del D['bb'] | _x(), 'bb'
        _x(), 'ccc'
        D.clear() | _x(), 'a'
        """,
    ),
    "raises: partly extended": Case(
        """
        L = [0.0]
        def g(n):
            for i in range(n):
                if i == 2: raise IndexError('two')
                yield i * 1.0
        """,
        """
        try:
            L.extend(g(v))
        except IndexError:
            L.append(-1.0)
        return x * sum(L), len(L)
        """,
        """
        2: L[:] = [0.0] | _x(), 1
        2: L[:] = [0.0] | _x(), 4
        _x(), 3
        L[:] = [0.0] | _x(), 1
        """,
    ),
    "raises: with statements": Case(
        """
        LOG = []
        @contextlib.contextmanager
        def c(n):
            LOG.append(n)
            try:
                yield n
            except ValueError:
                LOG.append('v')
            finally:
                LOG.append(-n)
        """,
        """
        with c(v) as n:
            if v > 2:
                raise ValueError
            x = x * n
        return x * len(LOG)
        """,
        """
        2: LOG.clear() | _x(), 1
        2: LOG.clear() | _x(), 3
        LOG.clear() | _x(), 2
        LOG.clear() | _x(), 1
        LOG.clear() | _x(), 3
        """,
    ),
    "raises: an object of the state": Case(
        """
        ERR = ValueError('kept', 1)
        H = NS(n=0)
        """,
        """
        H.n += 1
        if v:
            raise ERR
        return x * H.n
        """,
        """
        2: _x(), 0
        _x(), 1
        _x(), 0
        2: _x(), 1
        3: _x(), 0
        """,
    ),
}
