"""Programs with sets, whose order follows from their history."""

from __future__ import annotations

from .case import Case

SETS = {
    "set: order of collisions in update": Case(
        "S = set()",
        """
        S.update([7, 15])
        return x * 2, list(S)
        """,
        "6: S.clear() | _x()",
    ),
    "set: united with a set": Case(
        "S = set()",
        """
        S.update({17, 2, 3, 4, 5, 6})
        return x * 2, list(S)
        """,
        "6: S.clear() | _x()",
    ),
    "set: united in place": Case(
        """
        S = {40}
        T = {17, 2, 3, 4, 5, 6}
        """,
        """
        global S
        S |= T
        return x * 2, list(S)
        """,
        "6: S.clear(); S.add(40) | _x()",
    ),
    "set: pop": Case(
        "S = {1, 2, 3}",
        """
        p = S.pop()
        return x * p, list(S)
        """,
        """
        _x()
        8: S.add(1); S.add(2); S.add(3) | _x()
        """,
    ),
    "set: pop without use": Case(
        "S = {1, 2, 3}",
        """
        S.pop()
        return x * 2, list(S)
        """,
        """
        _x()
        8: S.add(1); S.add(2); S.add(3) | _x()
        """,
    ),
    "set: discards": Case(
        "S = {0, 8, 16}",
        """
        S.discard(0)
        S.discard(8)
        S.add(24)
        return x * 2, list(S)
        """,
        """
        3: S.clear(); S.update([0, 8, 16]) | _x()
        3: S.clear(); S.update([0, 8, 16]); S.add(1); S.discard(1) | _x()
        """,
    ),
    "set: many discards in one call": Case(
        "S = set(range(0, 64, 8))",
        """
        for i in range(0, 48, 8):
            S.discard(i)
        S.add(1)
        S.add(65)
        return x * 2, list(S)
        """,
        "5: S.clear(); S.update(range(0, 64, 8)) | _x()",
    ),
    "set: cleared when empty": Case(
        """
        S = set(range(40))
        for i in range(40): S.discard(i)
        """,
        """
        S.clear()
        S.add(33)
        S.add(1)
        return x * 2, list(S)
        """,
        "5: S = set(range(40)); [S.discard(i) for i in range(40)] | _x()",
    ),
    "set: difference in place": Case(
        "S = set(range(0, 64, 8))",
        """
        global S
        S -= {0, 8, 16}
        S.add(1)
        return x * 2, list(S)
        """,
        "5: S = set(range(0, 64, 8)) | _x()",
    ),
    "set: intersection in place": Case(
        "S = set(range(0, 64, 8))",
        """
        global S
        S &= {0, 8, 16, 24}
        S.add(1)
        return x * 2, list(S)
        """,
        "5: S = set(range(0, 64, 8)) | _x()",
    ),
    "set: symmetric difference in place": Case(
        "S = set(range(0, 64, 8))",
        """
        global S
        S ^= {0, 8, 16, 3}
        S.add(1)
        return x * 2, list(S)
        """,
        "5: S = set(range(0, 64, 8)) | _x()",
    ),
    "set: of text": Case(
        """
        S = {'q'}
        T = [f'name{i}' for i in range(9)]
        """,
        """
        for t in T:
            S.add(t)
        return x * 2, list(S)
        """,
        "6: S.clear(); S.add('q') | _x()",
    ),
    "set: new one that was popped": Case(
        "",
        """
        s = {1, 2, 3}
        p = s.pop()
        return x * p, s
        """,
        """
        _x()
        6: _s = results[-1][1]; _s.add(1); OUT = _s.pop() | _x()
        """,
        hits=0,
    ),
    "set: seen": Case(
        "S = set()",
        """
        new = v not in S
        S.add(v)
        return x * (2.0 if new else 3.0)
        """,
        """
        _x(), 1
        _x(), 2
        _x(), 1
        _x(), 2
        _x(), 1
        2: _x(), 2
        _x(), 1
        2: S.clear() | _x(), 1
        """,
    ),
}
