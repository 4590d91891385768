"""The annotations of the language and the standard library, which need no torch."""

from __future__ import annotations

from typing import Final

from magweld.frontend.annotations.dicts import DICTS
from magweld.frontend.annotations.effects import EFFECTS
from magweld.frontend.annotations.introspection import INTROSPECTION
from magweld.frontend.annotations.iterators import ITERATOR_RULES
from magweld.frontend.annotations.library import LIBRARY_RULES, REGULAR
from magweld.frontend.annotations.objects import OBJECTS
from magweld.frontend.annotations.operators import OPERATORS
from magweld.frontend.annotations.python import (
    FUNCTIONS,
    LIBRARY,
    MAKERS,
    METHODS,
    TYPES,
)
from magweld.frontend.annotations.special import SPECIAL
from magweld.frontend.monitor.annotation import Entries

# Later entries take the place of earlier ones.
CORE: Final[Entries] = (
    *FUNCTIONS,
    *TYPES,
    *MAKERS,
    *METHODS,
    *LIBRARY,
    *SPECIAL,
    *DICTS,
    *ITERATOR_RULES,
    *OPERATORS,
    *LIBRARY_RULES,
    *OBJECTS,
    *EFFECTS,
    *INTROSPECTION,
    *REGULAR,
)
