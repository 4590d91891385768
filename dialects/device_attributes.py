"""Owns the conversion between a `Device` and `#tile_graph.device`."""

from __future__ import annotations

import functools

from magweld.bindings import ir
from magweld.dialects.integers import i64, i64s
from magweld.dialects.tile_graph.attributes import (
    DeviceAttr,
    InstructionAttr,
    LevelAttr,
    LibraryAttr,
    PeakAttr,
)
from magweld.targets.device import (
    Device,
    Instruction,
    Level,
    LevelKind,
    LibraryRate,
    Peak,
)


def device_attribute(device: Device) -> DeviceAttr:
    """Return a device as an attribute in the current context."""
    levels = [
        _level_attribute(index, level) for index, level in enumerate(device.levels)
    ]
    return DeviceAttr.get(
        ir.StringAttr.get(device.name),
        ir.ArrayAttr.get(levels),
        i64(device.units),
        i64(device.threads),
        i64(device.warp),
        i64(device.vector_bits),
        ir.FloatAttr.get_f64(device.peak_gflops),
        ir.ArrayAttr.get([_peak_attribute(peak) for peak in device.peaks]),
        ir.ArrayAttr.get(
            [
                *map(_instruction_attribute, device.instructions),
                *map(_library_attribute, device.libraries),
            ]
        ),
    )


def device_from_attribute(attribute: DeviceAttr) -> Device:
    """Return the device that an attribute describes.

    Raises:
        ValueError: The attribute describes no possible device; the text says why,
            as "expected ..., got ...".
    """
    kept = _kept_device(str(attribute))
    if not kept:
        kept.append(_read_device(attribute))
    return kept[0]


# Every edge is verified against the device of its function: a graph has one device and
# thousands of edges. By the text, so that no context is kept.
@functools.lru_cache(maxsize=16)
def _kept_device(text: str) -> list[Device]:
    """Return where the device of an attribute is kept; it is empty at first."""
    return []


def _read_device(attribute: DeviceAttr) -> Device:
    for index, level in enumerate(attribute.levels):
        if not isinstance(level, LevelAttr):
            raise ValueError(f"expected level #{index} of the device, got {level}")
        if level.index != index:
            raise ValueError(
                f"expected level '{level.name}' to have index {index}, "
                f"got {level.index}"
            )
    for name, parts, kinds in (
        ("peak", attribute.peaks, (PeakAttr,)),
        ("instruction", attribute.instructions, (InstructionAttr, LibraryAttr)),
    ):
        for index, part in enumerate(parts):
            if not isinstance(part, kinds):
                raise ValueError(f"expected {name} #{index} of the device, got {part}")
    return Device(
        name=attribute.name,
        levels=tuple(_level(level) for level in attribute.levels),
        units=attribute.units,
        threads=attribute.threads,
        warp=attribute.warp,
        vector_bits=attribute.vector_bits,
        peak_gflops=attribute.peak_gflops,
        peaks=tuple(Peak(peak.dtype, peak.gflops) for peak in attribute.peaks),
        instructions=tuple(
            _instruction(i)
            for i in attribute.instructions
            if isinstance(i, InstructionAttr)
        ),
        libraries=tuple(
            LibraryRate(i.name, i.operation, i.operand, i.gflops)
            for i in attribute.instructions
            if isinstance(i, LibraryAttr)
        ),
    )


def _level(attribute: LevelAttr) -> Level:
    kinds = [kind.value for kind in LevelKind]
    if attribute.kind not in kinds:
        raise ValueError(
            f"expected the kind of level '{attribute.name}' to be one of "
            f"{', '.join(kinds)}, got '{attribute.kind}'"
        )
    return Level(
        name=attribute.name,
        capacity=attribute.capacity,
        bandwidth=attribute.bandwidth,
        transaction=attribute.transaction,
        units=attribute.units,
        kind=LevelKind(attribute.kind),
        write_bandwidth=attribute.write_bandwidth or None,
        write_transaction=attribute.write_transaction or None,
    )


def _instruction(attribute: InstructionAttr) -> Instruction:
    return Instruction(
        name=attribute.name,
        shape=attribute.shape,
        operand=attribute.operand,
        accumulator=attribute.accumulator,
        gflops=attribute.gflops,
    )


def _level_attribute(index: int, level: Level) -> LevelAttr:
    return LevelAttr.get(
        ir.StringAttr.get(level.name),
        i64(index),
        i64(level.capacity),
        ir.FloatAttr.get_f64(level.bandwidth),
        i64(level.transaction),
        i64(level.units),
        ir.StringAttr.get(level.kind),
        ir.FloatAttr.get_f64(level.write_bandwidth or 0.0),
        i64(level.write_transaction or 0),
    )


def _peak_attribute(peak: Peak) -> PeakAttr:
    return PeakAttr.get(
        ir.StringAttr.get(peak.dtype), ir.FloatAttr.get_f64(peak.gflops)
    )


def _instruction_attribute(instruction: Instruction) -> InstructionAttr:
    return InstructionAttr.get(
        ir.StringAttr.get(instruction.name),
        i64s(instruction.shape),
        ir.StringAttr.get(instruction.operand),
        ir.StringAttr.get(instruction.accumulator),
        ir.FloatAttr.get_f64(instruction.gflops),
    )


def _library_attribute(library: LibraryRate) -> LibraryAttr:
    return LibraryAttr.get(
        ir.StringAttr.get(library.name),
        ir.StringAttr.get(library.operation),
        ir.StringAttr.get(library.operand),
        ir.FloatAttr.get_f64(library.gflops),
    )
