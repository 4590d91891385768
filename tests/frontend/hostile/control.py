"""Programs that loop and branch on tensors and on numbers that change."""

from __future__ import annotations

from .case import Case

_DEEP = """
def deep(x):
    for _ in range(60):
        x = x * 1.01
    return x
def holds(x):
    return deep(x).sum() > 0
"""
# Counts of iterations: two, several, none, one, less than none.
_COUNTS = """
_x(), 2
_x(), 3
_x(), 4
_x(), 5
_x(), 3
_x(), 0
_x(), 1
_x(), 6
_x(), -1
_x(), 7
_x(), 2
_x(), 0
"""
_VALUES = """
_x(1.0)
_x(2.0)
_x(0.1)
_x(30.0)
_x(-1.0)
_x(0.0)
_x(5.0)
_x(-50.0)
_x(0.01)
_x(1.0)
_x(math.nan)
"""

CONTROL = {
    "for: unbound": Case(
        "",
        """
        n = v
        for i in range(n):
            y = x * i
            x = x + 1
        return x, y
        """,
        _COUNTS,
    ),
    "for: else": Case(
        "",
        """
        n = v
        for i in range(n):
            x = x * 0.5 + i
        else:
            x = x - 1
        return x
        """,
        _COUNTS,
    ),
    "for: break on number": Case(
        "",
        """
        n = v
        for i in range(n):
            if i == 3:
                break
            x = x + i
        else:
            return x, "else"
        return x, "break"
        """,
        _COUNTS,
    ),
    "for: lifted step": Case(
        "",
        """
        n = v
        for i in range(0, 12, n):
            x = x * 2 + i
        return x
        """,
        _COUNTS,
    ),
    "for: swap": Case(
        "",
        """
        n = v
        a, b = x, x * 2
        for _ in range(n):
            a, b = b, a + b
        return a, b
        """,
        _COUNTS,
    ),
    "for: append": Case(
        "",
        """
        n = v
        q = [x]
        for i in range(n):
            x = x * 2 - i
            q.append(x)
        return q, torch.stack(q)
        """,
        _COUNTS,
    ),
    "for: divides": Case(
        "",
        """
        n = v
        for i in range(n):
            x = x / (i - 4)
        return x
        """,
        _COUNTS,
    ),
    "for: carries number": Case(
        "",
        """
        n = v
        k = 1
        for i in range(n):
            k = k + 1
            x = x * 2
        return x, k
        """,
        _COUNTS,
    ),
    "for: index negative": Case(
        "",
        """
        n = v
        h = x * 1
        for i in range(n):
            h = h + x[-i - 1] + x[i - 1]
        return h
        """,
        _COUNTS,
    ),
    "for: raise on tensor": Case(
        "",
        """
        n = v
        for i in range(n):
            x = x * 2
            if x.sum() > 90:
                raise ValueError(f"at {i}: {x.sum().item()}")
        return x
        """,
        _COUNTS,
    ),
    "for: break in finally": Case(
        "",
        """
        n = v
        for i in range(n):
            try:
                x = x + 1
                if i == 1:
                    raise KeyError
            finally:
                if i == 1:
                    break
        return x, n
        """,
        _COUNTS,
    ),
    "for: numbers mixed": Case(
        "",
        """
        n = v
        for i in range(n):
            x = x + i // 2 + i % 3 - i / 4 + (-i) + abs(i - 2) + float(i) + (i * i)
        return x
        """,
        _COUNTS,
    ),
    "while: unbound": Case(
        "",
        """
        t = deep(x)
        while t.sum() < 20:
            t = t.abs() * 2 + 1
            y = t * 2
        return t, y
        """,
        _VALUES,
        before=_DEEP,
    ),
    "while: in place input": Case(
        "",
        """
        x.nan_to_num_()
        while x.sum() < 20:
            x.abs_().mul_(2).add_(1)
        return x * 1
        """,
        _VALUES,
        before=_DEEP,
    ),
    "while: rotates three": Case(
        "",
        """
        a, b, c = deep(x).nan_to_num(), x.nan_to_num(), x * 0 + 1
        while a.sum() < 20:
            a, b, c = b.abs() + 2, c + 1, a * 2
        return a, b, c
        """,
        _VALUES,
        before=_DEEP,
    ),
    "while: list": Case(
        "",
        """
        t, q = deep(x).nan_to_num(), []
        while t.sum() < 20:
            t = t.abs() * 2 + 1
            q.append(t)
        return q, len(q)
        """,
        _VALUES,
        before=_DEEP,
    ),
    "if: walrus": Case(
        "",
        """
        if (s := deep(x).sum()) > 0:
            return x * s
        return x - s
        """,
        _VALUES,
        before=_DEEP,
    ),
    "if: match": Case(
        "",
        """
        match (holds(x), x.shape):
            case (t, (3,)) if t:
                return x + 1
            case (t, _) if not t:
                return x - 1
            case _:
                return x
        """,
        _VALUES,
        before=_DEEP,
    ),
    "if: cheap assert": Case(
        "",
        """
        assert x.sum() > 0, f"sum is {x.sum().item():.1f}"
        return x * 2
        """,
        _VALUES,
        before=_DEEP,
    ),
    "if: finally returns": Case(
        "",
        """
        try:
            if (x < 0).any():
                raise ValueError("neg")
            return x * 2
        finally:
            if x[0] > 4:
                return x * 3
        """,
        _VALUES,
        before=_DEEP,
    ),
    "if: with exit swallows": Case(
        "",
        """
        class Swallow:
            def __init__(self):
                self.got = None

            def __enter__(self):
                return self

            def __exit__(self, kind, error, tb):
                self.got = None if kind is None else kind.__name__
                return x.sum() > 0

        s = Swallow()
        with s:
            if x[0] > 2 or x[0] < -2:
                raise KeyError("x")
            x = x + 1
        return x, s.got
        """,
        _VALUES,
        before=_DEEP,
    ),
    "if: recursion on value": Case(
        "",
        """
        def go(t, d=0):
            if t.sum() > 20 or d > 6:
                return t, d
            return go(t.abs() * 2 + 1, d + 1)

        return go(x)
        """,
        _VALUES,
        before=_DEEP,
    ),
    "if: signed zero": Case(
        "",
        """
        k = 0.0 if holds(x) else -0.0
        return torch.full((2,), 1.0) / k
        """,
        _VALUES,
        before=_DEEP,
    ),
    "if: nonzero loop": Case(
        "",
        """
        out = []
        for (i,) in x.nonzero().tolist():
            out.append(x[i] * i)
        return out, x.count_nonzero().item()
        """,
        _VALUES,
        before=_DEEP,
    ),
}
