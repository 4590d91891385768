"""Owns the conversion between a `Device` and `#tile_graph.device`."""

from __future__ import annotations

from magweld.bindings import ir
from magweld.dialects.tile_graph.attributes import DeviceAttr, LevelAttr
from magweld.targets.device import Device, Level, LevelKind


def device_attribute(device: Device) -> DeviceAttr:
    """Return a device as an attribute in the current context."""
    levels = [
        _level_attribute(index, level) for index, level in enumerate(device.levels)
    ]
    return DeviceAttr.get(
        ir.StringAttr.get(device.name),
        ir.ArrayAttr.get(levels),
        _integer(device.units),
        _integer(device.threads),
        _integer(device.warp),
        _integer(device.vector_bits),
        ir.FloatAttr.get_f64(device.peak_gflops),
    )


def device_from_attribute(attribute: DeviceAttr) -> Device:
    """Return the device that an attribute describes.

    Raises:
        ValueError: The attribute describes no possible device; the text says why,
            as "expected ..., got ...".
    """
    for index, level in enumerate(attribute.levels):
        if not isinstance(level, LevelAttr):
            raise ValueError(f"expected level #{index} of the device, got {level}")
        if level.index != index:
            raise ValueError(
                f"expected level '{level.name}' to have index {index}, "
                f"got {level.index}"
            )
    return Device(
        name=attribute.name,
        levels=tuple(_level(level) for level in attribute.levels),
        units=attribute.units,
        threads=attribute.threads,
        warp=attribute.warp,
        vector_bits=attribute.vector_bits,
        peak_gflops=attribute.peak_gflops,
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
    )


def _level_attribute(index: int, level: Level) -> LevelAttr:
    return LevelAttr.get(
        ir.StringAttr.get(level.name),
        _integer(index),
        _integer(level.capacity),
        ir.FloatAttr.get_f64(level.bandwidth),
        _integer(level.transaction),
        _integer(level.units),
        ir.StringAttr.get(level.kind),
    )


def _integer(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
