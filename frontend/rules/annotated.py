"""Owns calls that annotations take for one operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def record_operator(
    observer: Observer, name: str, func: Any, args: Any, kwargs: Any
) -> None:
    """Record the current instruction as one call of an operator."""
    operators = observer.session.operators
    operators.open(func, args, kwargs)

    def close(observer: Observer, stack: list[Any]) -> None:
        observer.awaits_operator = ""
        operators.close(stack[-1])

    observer.session.opaque_caller = observer
    observer.awaits_operator = name
    observer.after = close
