"""Programs with changing numbers in sequences that a call takes apart."""

from __future__ import annotations

from .case import Case

STATE = """
P = namedtuple('P', 'a b')
def g(a, b=1, c=0, k=1): return (a * 100 + b * 10 + c) * k
def unpacked(t):
    a, b = t
    return a * 10 + b
"""
USES = """
sum(T)
min(T) * 10 + max(T)
math.prod(T)
max(*T)
min(*T, 3)
math.hypot(*T)
operator.add(*T)
g(*T)
g(*T, k=3)
g(1, *T)
g(*T, **{'k': T[0]})
g(*(T[0], T[1]), k=T[1])
(lambda *a: sum(a))(*T)
(lambda *a: len(a) + a[0])(*T)
(T == (5, 2)) * 2
unpacked(T)
x.new_ones(tuple(T)).sum() + torch.arange(*sorted(T)).sum()
x.unsqueeze(0).expand(T[0], 2).sum() + x[T[1] % 2]
"""
NUMBERS = ((1, 2), (3, 2), (4, 2), (5, 2), (6, 3), (7, 4), (8, 5), (9, 5), (5, 9))
PLACES = {
    "tuple of an object": ("H = NS(t=None)", "H.t", "H.t = {} | _x()"),
    "argument": ("", "v", "_x(), {}"),
    "list of the caller": ("L = []", "L", "L[:] = {} | _x()"),
    "named tuple": ("H = NS(t=None)", "H.t", "H.t = P(*{}) | _x()"),
}
SPREAD = {
    f"{place}: {use}": Case(
        state,
        f"T = {source}\nreturn x * ({use})",
        "\n".join(call.format(pair) for pair in NUMBERS),
        hits=0,
        before=STATE,
    )
    for place, (state, source, call) in PLACES.items()
    for use in USES.strip().splitlines()
}
