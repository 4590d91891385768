"""Texts that are kept compressed."""

from __future__ import annotations

import pytest

from magweld.packed_text import pack_text, unpack_text


@pytest.mark.parametrize("text", ["", "module {\n}\n", "%0 é\n" * 1000])
def test_a_packed_text_comes_back(text: str) -> None:
    assert unpack_text(pack_text(text)) == text
    assert len(text) < 1000 or len(pack_text(text)) < len(text) / 10


def test_other_bytes_are_refused() -> None:
    for wrong in ("AAAA", "é", "A"):
        with pytest.raises(ValueError, match=r"."):
            unpack_text(wrong)
