"""Owns the spelling of floating-point literals for the LLVM that assembles the text.

The LLVM behind MLIR's bindings prints shortest decimals, `f0x` bit patterns, `+inf`
and `+qnan`, each read in the literal's own type. Older parsers, such as llvmlite's,
know only exact decimals and the bit patterns 0x (float and double), 0xH (half) and
0xR (bfloat), and refuse the rest. Neither side offers another interchange format
that both understand, hence this rewrite of single tokens.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

_TOKEN = re.compile(
    r"""
      "(?:[^"\\]|\\.)*"                              # strings and quoted names
    | [@%!$\#][-\w.$]+                               # names
    | ;[^\n]*                                        # comments
    | (?P<line>\n)
    | \b(?P<type>half|bfloat|float|double)\b
    | (?P<bits>\bf0x[0-9A-Fa-f]+)
    | (?P<special>[-+](?:inf\b|qnan\b|s?nan\(0x[0-9A-Fa-f]+\)))
    | (?P<decimal>[-+]?\b\d+\.\d*(?:[eE][-+]?\d+)?)
    """,
    re.VERBOSE,
)


def respell_literals(text: str) -> str:
    """Return LLVM IR text with every floating-point literal as a bit pattern.

    Raises:
        ValueError: A literal stands where no type says how to read it.
    """
    kind = ""

    def respell(match: re.Match[str]) -> str:
        nonlocal kind
        if match["line"]:
            kind = ""
        elif match["type"]:
            kind = match["type"]
        elif match["bits"]:
            return _SPELL[_known(kind, match)](int(match["bits"][3:], 16))
        elif match["special"]:
            known = _known(kind, match)
            return _SPELL[known](_special(match["special"], known))
        elif match["decimal"]:
            known = _known(kind, match)
            return _SPELL[known](_round(float(match["decimal"]), known))
        return match[0]

    return _TOKEN.sub(respell, text)


def _known(kind: str, match: re.Match[str]) -> str:
    if not kind:
        raise ValueError(f"the literal '{match[0]}' has no type before it on its line")
    return kind


# Width of a type and of its significand's field, in bits.
_FORMATS = {"half": (16, 10), "bfloat": (16, 7), "float": (32, 23), "double": (64, 52)}


# Codes of the module struct for a type and for the integer of the same width.
_STRUCT_CODES = {"half": ("e", "H"), "float": ("f", "I"), "double": ("d", "Q")}


def _special(text: str, kind: str) -> int:
    """Return the bits of an infinity or NaN."""
    width, fraction = _FORMATS[kind]
    sign = (text[0] == "-") << (width - 1)
    exponent = ((1 << (width - 1 - fraction)) - 1) << fraction
    quiet = 1 << (fraction - 1)
    name, _, payload = text[1:].rstrip(")").partition("(")
    low = {"inf": 0, "qnan": quiet, "nan": quiet, "snan": 0}[name]
    return sign | exponent | low | (int(payload, 16) if payload else 0)


def _round(number: float, kind: str) -> int:
    """Return the bits of the nearest number of a type."""
    if kind == "bfloat":
        bits: int = struct.unpack("<I", struct.pack("<f", number))[0]
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    code, word = _STRUCT_CODES[kind]
    rounded: int = struct.unpack(f"<{word}", struct.pack(f"<{code}", number))[0]
    return rounded


def _float_as_double(bits: int) -> str:
    # A float is spelled by the bits of the double of the same value. Widening by
    # hand keeps the payload of a NaN, which a conversion would make quiet.
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return f"0x{sign << 63 | 0x7FF << 52 | fraction << 29:016X}"
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


_SPELL: dict[str, Callable[[int], str]] = {
    "half": "0xH{:04X}".format,
    "bfloat": "0xR{:04X}".format,
    "float": _float_as_double,
    "double": "0x{:016X}".format,
}
