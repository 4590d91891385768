"""Owns the mark of what answers calls, and hangs on results that need gradients."""

from __future__ import annotations


class KeptByRecords:
    """Base of classes whose objects records keep; their end runs no code of a program.

    Autograd nodes of results refer to them. A program that drops such a result drops
    none of them, and may be recorded.
    """

    __slots__ = ()
