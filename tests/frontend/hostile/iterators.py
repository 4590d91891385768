"""Programs with iterators that outlive a call."""

from __future__ import annotations

from .case import Case

ITERATORS = {
    "iterator: advanced, then its list is cleared": Case(
        "L = [5.0] * 6; IT = iter(L)",
        """
        v = next(IT, -1.0)
        L.clear()
        return x * v
        """,
        """
        _x()
        8: L.extend([5.0] * 6) | _x()
        """,
    ),
    "iterator: drained, then its list grows": Case(
        "L = [1.0, 2.0]; IT = iter(L)",
        """
        n = 0.0
        for a in IT:
            n += a
        L.append(3.0)
        return x * n
        """,
        """
        _x()
        4: L[:] = [1.0, 2.0]; IT = iter(L) | _x()
        2: _x()
        """,
    ),
    "iterator: of a list that has grown": Case(
        "L = [1.0, 2.0]",
        """
        L.extend([3.0, 4.0, 5.0])
        it = iter(L)
        for _ in range(4):
            next(it)
        return x * 2, it
        """,
        """
        3: L[:] = [1.0, 2.0] | _x()
        3: L[:] = [1.0, 2.0]; OUT = list(results[-1][1]) | _x()
        """,
        hits=0,
    ),
    "iterator: of a list that has shrunk": Case(
        "L = [1.0, 2.0, 3.0, 4.0]",
        """
        it = iter(L)
        for _ in range(3):
            next(it)
        L.clear()
        return x * 2, it
        """,
        """
        3: L[:] = [1.0, 2.0, 3.0, 4.0] | _x()
        3: L[:] = [1.0, 2.0, 3.0, 4.0, 5.0]; OUT = list(results[-1][1]); L.pop() | _x()
        """,
    ),
    "iterator: of a dict that has grown": Case(
        "D = {'a': 1.0}",
        """
        D['new'] = 2.0
        it = iter(D)
        next(it)
        return x * 2, it
        """,
        """
        _x()
        6: OUT = list(results[-1][1]); del D['new'] | _x()
        """,
        hits=0,
    ),
    "iterator: of a dict with other values": Case(
        "D = {'a': 1.0, 'b': 2.0}",
        """
        it = iter(D.items())
        next(it)
        D['b'] = 3.0
        return x * 2, it
        """,
        """
        _x()
        6: OUT = list(results[-1][1]); D['b'] = 2.0 | _x()
        """,
    ),
    "iterator: reversed list that has grown": Case(
        "L = [1.0, 2.0]",
        """
        L.extend([3.0, 4.0, 5.0])
        it = reversed(L)
        next(it)
        return x * 2, it
        """,
        """
        _x()
        6: OUT = list(results[-1][1]); L[:] = [1.0, 2.0] | _x()
        """,
        hits=0,
    ),
    "iterator: composed of what has grown": Case(
        "L = [1.0, 2.0]; D = {'a': 1.0}",
        """
        L.extend([3.0, 4.0, 5.0])
        D['b'] = 2.0
        e, z = enumerate(L), zip(L, D)
        for _ in range(3):
            next(e)
        next(z)
        return x * 2, e, z, map(abs, L)
        """,
        """
        _x()
        6: OUT = [*map(list, results[-1][1:])]; L[:] = [1.0, 2.0]; del D['b'] | _x()
        """,
        hits=0,
    ),
    "iterator: two of one list": Case(
        "L = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; I1, I2 = iter(L), iter(L)",
        """
        a, b = next(I1), next(I2)
        c = next(I1)
        return x * (a + b * c)
        """,
        """
        2: I1, I2 = iter(L), iter(L) | _x()
        2: I1 = iter(L); I2 = I1 | _x()
        I1, I2 = iter(L), iter(L) | _x()
        next(I1) | _x()
        """,
    ),
    "iterator: of zip and its part": Case(
        """
        L = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        I1 = iter(L)
        Z = zip(I1, [7.0, 8.0, 9.0])
        """,
        """
        a = next(Z)
        b = next(I1)
        return x * a[0] * a[1] + b
        """,
        """
        4: I1 = iter(L); Z = zip(I1, [7.0, 8.0, 9.0]) | _x()
        2: _x()
        """,
    ),
    "iterator: goes round": Case(
        "L = [1.0, 2.0, 3.0]; H = NS(it=iter(L))",
        """
        v = next(H.it, None)
        if v is None:
            H.it = iter(L)
            v = next(H.it)
        return x * v
        """,
        "14: _x()",
    ),
    "iterator: kept in an attribute": Case(
        "D = {'a': 1.0, 'b': 2.0, 'c': 3.0}; H = NS(it=None)",
        """
        H.it = iter(D.values())
        next(H.it)
        D['a'] = 5.0
        return x * 2
        """,
        """
        _x()
        6: OUT = list(H.it); D['a'] = 1.0 | _x()
        """,
    ),
    "iterator: a list that is replaced while iterated": Case(
        "L = [1.0, 2.0, 3.0]",
        """
        t = 0.0
        for a in L:
            t += a
            if a == 2.0:
                L[:] = [9.0, 9.0, 7.0, 5.0]
        return x * t
        """,
        "6: L[:] = [1.0, 2.0, 3.0] | _x()",
    ),
    "iterator: islice and chain kept": Case(
        "L = [1.0, 2.0, 3.0, 4.0]; H = NS(it=None)",
        """
        H.it = itertools.chain(itertools.islice(L, 1, 3), [x])
        first = next(H.it)
        return x * first
        """,
        """
        2: _x()
        2: OUT = list(H.it) | _x()
        L[1] = 8.0; OUT = list(H.it) | _x()
        _x()
        """,
    ),
    "of the list that is written": Case(
        "L, M = [1.0, 2.0], [1.0, 2.0]; IT = iter(L)",
        """
        M.append(3.0)
        M[0] = 7.0
        return x * next(IT, 0.5)
        """,
        """
        3: M[:] = [1.0, 2.0]; IT = iter([1.0, 2.0]) | _x()
        3: M[:] = [1.0, 2.0]; IT = iter(M) | _x()
        """,
    ),
    "at the end of the list that is written": Case(
        "M = [1.0, 2.0]",
        """
        M.append(3.0)
        return x * next(v, 0.5)
        """,
        """
        3: M[:] = [1.0, 2.0]; _it = iter([1.0]); next(_it) | _x(), _it
        3: M[:] = [1.0]; _it = iter(M); next(_it) | _x(), _it
        """,
    ),
    "of the dict that is written": Case(
        "M = {'a': 1.0}",
        """
        M['b'] = 2.0
        try:
            k = next(v)
        except RuntimeError:
            k = 'zzz'
        return x * len(k)
        """,
        """
        3: M.pop('b', 0); _it = iter({'a': 1.0}) | _x(), _it
        3: M.pop('b', 0); _it = iter(M) | _x(), _it
        """,
    ),
    "of the caller, over a dict that is updated": Case(
        "D = {'z': 0.0, 'a': 1.0, 'b': 2.0}; del D['z']; IT = iter(D); next(IT)",
        """
        D.update([('b', 5.0)])
        return x * 2
        """,
        """
        _x()
        4: OUT = list(IT); D['b'] = 2.0; IT = iter(D); next(IT) | _x()
        """,
    ),
}
