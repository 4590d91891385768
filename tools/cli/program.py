"""Owns the reading of models and inputs from a command line."""

from __future__ import annotations

import importlib
import importlib.util
import io
import logging
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from magweld.compiler_options import parse_bytes
from magweld.diagnostics import MagweldError
from magweld.runtime.dtypes import TORCH_DTYPES

_SHAPE = re.compile(r"(?P<extents>(\d+x)*)(?P<dtype>[a-z]\w*)", re.ASCII)


class CommandLineError(MagweldError):
    """A word of the command line that names nothing usable."""


def load_model(text: str) -> Callable[..., Any]:
    """Return what the factory of "MODULE:FACTORY" makes.

    Raises:
        CommandLineError: There is no such module or factory, or it raised.
    """
    module_name, separator, factory_name = text.rpartition(":")
    if not (separator and module_name and factory_name):
        raise CommandLineError(f"expected MODULE:FACTORY, got '{text}'")
    module = _load_module(module_name)
    factory = getattr(module, factory_name, None)
    if not callable(factory):
        reason = "is not callable" if hasattr(module, factory_name) else "is not there"
        raise CommandLineError(f"'{factory_name}' of '{module_name}' {reason}")
    try:
        model: object = factory()
    except (Exception, SystemExit) as error:
        message = f"'{text}' raised {type(error).__name__}: {error}"
        raise CommandLineError(message) from error
    if not callable(model):
        raise CommandLineError(
            f"'{text}' gave a {type(model).__name__}, expected a model or function"
        )
    return model


def load_exported(path: Path) -> ExportedProgram:
    """Return what `torch.export.save` wrote.

    Raises:
        CommandLineError: It is no such file.
        OSError: It cannot be read.
    """
    content = io.BytesIO(path.read_bytes())
    try:
        # Torch does not look at the checksums: damaged parameters would be used.
        damaged = zipfile.ZipFile(content).testzip()
        if damaged is not None:
            raise ValueError(f"the checksum of '{damaged}' is wrong")
        content.seek(0)
        with _quiet():
            return torch.export.load(content)
    except Exception as error:
        # The file is data: reading it raises whatever it likes.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        message = f"'{path}' is no intact program of torch.export: {reason}"
        raise CommandLineError(message) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from telling with a traceback what an error tells as well."""
    logger = logging.getLogger("torch.export")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def example_inputs(texts: Sequence[str]) -> tuple[Tensor, ...]:
    """Return random tensors for descriptions such as "8x3xf32", always the same.

    Floating-point elements are normally distributed, others are 0 or 1: as indices
    they are in range everywhere.

    Raises:
        CommandLineError: A description is ill-formed, or there is no memory for it.
    """
    generator = torch.Generator().manual_seed(0)
    return tuple(_example_input(text, generator) for text in texts)


def _example_input(text: str, generator: torch.Generator) -> Tensor:
    shape, dtype = _parse(text)
    try:
        return random_tensor(shape, dtype, generator)
    except (RuntimeError, TypeError) as error:
        # Behind the first line torch shows the frames of its own code.
        reason, *_ = str(error).splitlines()
        raise CommandLineError(f"no input '{text}' can be made: {reason}") from error


def memory_budget(text: str | None) -> int | None:
    """Return the bytes of an option such as "2GiB", None if it is not given.

    Raises:
        CommandLineError: It is no size.
    """
    try:
        return parse_bytes(text) or None
    except ValueError as error:
        raise CommandLineError(str(error)) from error


def require_runs(model: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
    """Call a model once as it is.

    Raises:
        CommandLineError: It raised: the inputs are not for this model.
    """
    try:
        with torch.no_grad():
            model(*inputs)
    except (Exception, SystemExit) as error:
        message = f"the model raised {type(error).__name__} on these inputs: {error}"
        raise CommandLineError(message) from error


def random_tensor(
    shape: Sequence[int], dtype: torch.dtype, generator: torch.Generator
) -> Tensor:
    """Return a tensor as `example_inputs` makes them."""
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(tuple(shape), generator=generator).to(dtype)
    return torch.randint(0, 2, tuple(shape), generator=generator).to(dtype)


def _parse(text: str) -> tuple[list[int], torch.dtype]:
    match = _SHAPE.fullmatch(text)
    if match is None or match["dtype"] not in TORCH_DTYPES:
        known = ", ".join(name for name in TORCH_DTYPES if name.isalnum())
        raise CommandLineError(
            f"expected an input such as 1x3x8x8xf32, got '{text}'; types: {known}"
        )
    extents = [int(extent) for extent in match["extents"].split("x") if extent]
    return extents, TORCH_DTYPES[match["dtype"]]


def _load_module(name: str) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _load_file(Path(name))
        # As with `python -m`: modules of the current folder come first.
        sys.path.insert(0, "")
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        # Scripts leave by sys.exit() unless they are run by their name.
        message = f"cannot load '{name}': {type(error).__name__}: {error}"
        raise CommandLineError(message) from error


def _load_file(path: Path) -> ModuleType:
    # A script finds the modules beside it, as if python had started it.
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, "the suffix is one of Python's"
    assert spec.loader is not None, "a file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
