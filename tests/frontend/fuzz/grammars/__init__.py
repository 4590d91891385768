"""The grammars by name."""

from __future__ import annotations

from typing import Final

from .ambient import AMBIENT
from .control import CONTROL
from .data import DATA
from .state import STATE
from .values import VALUES

GRAMMARS: Final = {
    grammar.name: grammar for grammar in (STATE, CONTROL, VALUES, AMBIENT, DATA)
}
