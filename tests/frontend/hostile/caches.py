"""Programs with defaults and caches."""

from __future__ import annotations

from .case import Case

CACHES = {
    "default: the factory writes to the same dict": Case(
        """
        def fac():
            D['z'] = 1.0
            return 2.0
        D = defaultdict(fac)
        """,
        "return x * D['k']",
        """
        _x()
        5: D.clear() | _x()
        """,
    ),
    "default: nested": Case(
        "D = defaultdict(lambda: defaultdict(list))",
        """
        D[v]['a'].append(x)
        D[v]['b'].append(1.0)
        return x * len(D) * len(D[v]['a'])
        """,
        """
        _x(), 'p'
        _x(), 'q'
        3: D.clear() | _x(), 'p'
        """,
    ),
    "default: another factory": Case(
        "D = defaultdict(list)",
        """
        D['k'].append(1.0)
        return x * len(D['k'])
        """,
        """
        _x()
        2: D.clear() | _x()
        3: D.clear(); D.default_factory = lambda: [9.0] | _x()
        2: D.clear(); D.default_factory = None | _x()
        """,
    ),
    "default: missing hook that writes elsewhere": Case(
        """
        LOG = []
        class T(dict):
            def __missing__(self, key):
                LOG.append(key)
                self[key] = len(LOG) * 1.0
                return self[key]
        D = T()
        """,
        "return x * D[v] + len(D)",
        """
        _x(), 'a'
        _x(), 'b'
        _x(), 'c'
        _x(), 'a'
        _x(), 'b'
        _x(), 'c'
        _x(), 'a'
        _x(), 'b'
        _x(), 'd'
        """,
    ),
    "cache: called after a write": Case(
        """
        class M: pass
        H = M(); H.n = 0.0
        @functools.lru_cache(maxsize=1)
        def scale(h, k): return h.n + k
        """,
        """
        H.n = v
        return x * scale(H, 1)
        """,
        """
        3: _x(), 2.0
        scale.cache_clear(); H.n = 0.0 | _x(), 2.0
        _x(), 2.0
        scale.cache_clear(); H.n = 7.0 | _x(), 2.0
        scale(H, 5); H.n = 1.0 | _x(), 2.0
        _x(), 2.0
        """,
    ),
    "cache: its body writes, too": Case(
        """
        LOG = []
        @functools.lru_cache(maxsize=1)
        def scale(k):
            LOG.append('body')
            return k * 2.0
        """,
        """
        LOG.append('program')
        return x * scale(3)
        """,
        """
        2: _x()
        LOG.clear() | _x()
        scale(4); LOG.clear() | _x()
        scale.cache_clear(); LOG.clear() | _x()
        _x()
        """,
    ),
    "cache: its body reads what was written": Case(
        """
        T = {'f': 2.0}
        @functools.cache
        def scale(k): return k * T['f']
        """,
        """
        T['f'] = 3.0
        y = x * scale(1.0)
        T['f'] = 2.0
        return y
        """,
        """
        3: _x()
        scale.cache_clear() | _x()
        _x()
        scale.cache_clear(); T['f'] = 9.0 | _x()
        _x()
        """,
    ),
    "cache: reads a tensor that was written": Case(
        """
        B = torch.zeros(2)
        @functools.cache
        def total(k): return B.sum().item() + k
        """,
        """
        B.fill_(1.0)
        return x * total(1.0)
        """,
        """
        2: _x()
        B.zero_() | _x()
        2: B.zero_(); total.cache_clear() | _x()
        _x()
        """,
    ),
    "cache: before any write": Case(
        """
        T = {'f': 2.0}
        @functools.lru_cache(maxsize=2)
        def scale(k): return k * T['f']
        """,
        """
        y = x * scale(v)
        T['n'] = v
        return y
        """,
        """
        2: _x(), 1.0
        _x(), 2.0
        _x(), 3.0
        T['f'] = 5.0 | _x(), 1.0
        _x(), 3.0
        _x(), 1.0
        scale.cache_clear() | _x(), 1.0
        """,
    ),
    "cache: of a method, object replaced": Case(
        """
        class M:
            def __init__(self, n): self.n = n
            @functools.cache
            def scale(self): return self.n * 2.0
        H = M(1.0)
        """,
        "return x * H.scale()",
        """
        2: _x()
        H = M(5.0) | _x()
        _x()
        H.n = 9.0 | _x()
        _x()
        M.scale.cache_clear() | _x()
        _x()
        """,
    ),
    "cache: by hand, keyed by tensors": Case(
        "D = {}; T1, T2 = torch.ones(2), torch.ones(2)",
        """
        if v not in D:
            D[v] = v.sum() + len(D)
        return x * D[v]
        """,
        """
        2: _x(), T1
        _x(), T2
        _x(), T1
        T1.add_(1.0) | _x(), T1
        D.clear() | _x(), T1
        2: _x(), T2
        """,
    ),
    "cache: by hand, keyed by shape and number": Case(
        "D = {}",
        """
        k = (x.shape[0], v)
        if k not in D:
            D[k] = torch.full((x.shape[0],), float(v))
        return x * D[k]
        """,
        """
        2: torch.ones(2), 1
        torch.ones(3), 1
        torch.ones(2), 1
        2: torch.ones(3), 2
        torch.ones(4), 2
        torch.ones(5), 2
        torch.ones(6), 2
        torch.ones(2), 1
        """,
    ),
    "cache: cached_property": Case(
        """
        class M:
            n = 2.0
            @functools.cached_property
            def scale(self): return self.n * 3.0
        H = M()
        """,
        "return x * H.scale",
        """
        2: _x()
        H.n = 9.0 | _x()
        _x()
        del H.scale | _x()
        _x()
        H.__dict__['scale'] = 1.5 | _x()
        _x()
        H = M() | _x()
        _x()
        """,
    ),
    "default: factory with a cache": Case(
        """
        T = {'f': 2.0}
        @functools.cache
        def fac(): return T['f']
        D = defaultdict(fac)
        """,
        "return x * D['k']",
        """
        _x()
        2: D.clear() | _x()
        D.clear(); fac.cache_clear(); T['f'] = 3.0 | _x()
        2: D.clear() | _x()
        """,
    ),
}
