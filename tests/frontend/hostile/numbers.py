"""Programs with numbers and text in containers."""

from __future__ import annotations

from .case import Case

# Calls with another number each, which is lifted on the way.
CHANGING = """
    _x(), 1
    _x(), 2
    _x(), 3
    _x(), 4
    _x(), 5
    2: _x(), 6
    _x(), 7
    _x(), 9
"""

NUMBERS = {
    "number: in a list with an alias": Case(
        "S = [0]; T = S",
        """
        S[0] += v
        return x * T[0]
        """,
        CHANGING
        + """\
    T = [5] | _x(), 3
    _x(), 4
""",
    ),
    "number: state in a dataclass": Case(
        """
        @dataclass
        class P:
            n: int = 0
            t: list = field(default_factory=list)
        H = NS(p=P())
        """,
        """
        H.p = dataclasses.replace(H.p, n=H.p.n + v)
        H.p.t.append(v)
        return x * H.p.n * len(H.p.t)
        """,
        CHANGING
        + """\
    H.p.t.clear() | _x(), 3
    H.p = P() | _x(), 3
""",
    ),
    "number: state in a tuple window": Case(
        "H = NS(t=(0, 0, 0))",
        """
        H.t = (*H.t[1:], v)
        return x * sum(H.t)
        """,
        CHANGING,
        hits=0,
    ),
    "number: exchanged": Case(
        "H = NS(a=1, b=2)",
        """
        H.a, H.b = H.b, H.a + v
        return x * H.a - H.b
        """,
        CHANGING,
    ),
    "number: toggles": Case(
        "H = NS(on=False, n=0)",
        """
        H.on = not H.on
        H.n += H.on
        return x * 2 + H.n if H.on else x - H.n
        """,
        "10: _x()",
    ),
    "number: by setattr, vars and dict": Case(
        "H = NS(a=0, b=0, c=0)",
        """
        setattr(H, 'a', v)
        vars(H)['b'] = H.a + 1
        H.__dict__.update(c=H.b * 2)
        object.__setattr__(H, 'd', H.c + H.a)
        return x * H.d
        """,
        CHANGING,
    ),
    "number: carried by an exception": Case(
        """
        class E(Exception):
            def __init__(self, n): self.n = n
        H = NS(n=0)
        """,
        """
        try:
            raise E(v)
        except E as e:
            H.n = e.n + e.args[0]
        return x * H.n
        """,
        CHANGING,
    ),
    "number: through stars": Case(
        """
        def g(*a, k=1, **m): return sum(a) * k + m.get('z', 0)
        H = NS(n=1)
        """,
        """
        H.n = g(H.n, v, k=2, **{'z': v})
        return x * H.n
        """,
        CHANGING,
    ),
    "number: big and small": Case(
        "H = NS(n=2**62)",
        """
        H.n = H.n * 2 + v
        return x * 2, H.n, H.n % 7
        """,
        CHANGING,
    ),
    "text: made of a number": Case(
        "H = NS(n=0, tag='')",
        """
        H.n += 1
        H.tag = f'step{H.n % 3}'
        return x * len(H.tag), H.tag
        """,
        "10: _x()",
    ),
    "text: that grows": Case(
        "H = NS(s='')",
        """
        H.s = (H.s + v)[-3:]
        return x * len(H.s), H.s
        """,
        """
        _x(), 'a'
        _x(), 'b'
        _x(), 'c'
        _x(), 'a'
        _x(), 'b'
        _x(), 'c'
        _x(), 'a'
        _x(), 'b'
        _x(), 'c'
        _x(), 'a'
        _x(), 'b'
        _x(), 'c'
        """,
    ),
}
