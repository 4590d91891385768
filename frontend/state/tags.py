"""Owns version tags of classes: numbers that tell whether a class is as it was.

The tag is unique to a state of a class and its bases: any change resets it, and a tag
is never given out twice.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Final

# Offset of `tp_version_tag` in PyTypeObject on 64-bit CPython 3.11 and 3.12 (Include/
# cpython/object.h); `tags_work` checks it.
_TAG_OFFSET: Final = 384


def tag_cell(cls: type) -> ctypes.c_uint:
    """Return the memory of the tag of a class, which has to stay alive; 0 is none."""
    return ctypes.c_uint.from_address(id(cls) + _TAG_OFFSET)


@functools.cache
def tags_work() -> bool:
    """Return whether version tags behave as they must on this interpreter."""
    if sys.version_info[:2] not in ((3, 11), (3, 12)) or sys.maxsize < 1 << 32:
        return False

    class Base:
        x = 1

    class Derived(Base):
        pass

    instance = Derived()
    tags = []
    for _ in range(2):
        for _ in range(3):
            assert instance.x, "the lookup gives the class a tag"
        tags.append(tag_cell(Derived).value)
    Base.x = 2
    reset = tag_cell(Derived).value
    assert instance.x == 2, "the lookup gives the class a new tag"
    last = tag_cell(Derived).value
    return tags[0] == tags[1] != 0 and reset == 0 and last not in (0, tags[0])
