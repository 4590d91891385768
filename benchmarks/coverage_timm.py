"""The timm suite of the coverage table: the smallest model of every family."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import timm
import torch
from coverage_check import Arguments, Case, Inputs
from timm.models import _registry

# Words of size in names, the smallest first.
_SIZES = (
    "test",
    "atto",
    "femto",
    "pico",
    "zepto",
    "nano",
    "xxs",
    "xxtiny",
    "xtiny",
    "xs",
    "tiny",
    "mini",
    "xsmall",
    "small",
    "medium",
    "base",
    "large",
    "huge",
    "giant",
)
_SMALL_IMAGES = (64, 128)
LARGEST = 40_000_000  # parameters


def _weight(name: str) -> tuple[int, int, str]:
    words = name.split("_")
    ranks = [_SIZES.index(word) for word in words if word in _SIZES]
    numbers = [int(number) for number in re.findall(r"\d+", name)]
    return (min(ranks, default=len(_SIZES)), sum(numbers), name)


def families() -> dict[str, str]:
    """Return the smallest model by family: a module of timm and a name's first word."""
    found: dict[str, list[str]] = {}
    for module in timm.list_modules():
        for name in _registry._module_to_models[module]:
            word = re.match(r"[a-z]+", name)
            assert word is not None, "names begin with a letter"
            found.setdefault(f"{module}:{word.group()}", []).append(name)
    return {family: min(names, key=_weight) for family, names in found.items()}


def _create(name: str) -> torch.nn.Module:
    """Make a model; a large one has few layers where that can be asked for."""
    with torch.device("meta"):
        model = timm.create_model(name, pretrained=False)
    if sum(p.numel() for p in model.parameters()) > LARGEST:
        try:
            return timm.create_model(name, pretrained=False, depth=2)
        except TypeError:
            pass  # it has no such argument
    return timm.create_model(name, pretrained=False)


def _build(name: str) -> tuple[torch.nn.Module, Inputs]:
    model = _create(name)
    config: dict[str, Any] = model.pretrained_cfg
    channels, height, width = config["input_size"]
    sizes = [] if config.get("fixed_input_size") else list(_SMALL_IMAGES)
    model.eval()
    for size in sizes:
        try:
            with torch.no_grad():
                model(torch.zeros(1, channels, size, size))
        except Exception:
            continue  # too small for this model
        height = width = size
        break

    def inputs() -> Arguments:
        return (torch.randn(1, channels, height, width),), {}

    return model, inputs


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for family, name in sorted(families().items()):

        def build(name: str = name) -> tuple[torch.nn.Module, Inputs]:
            return _build(name)

        yield Case(name, family, build)
