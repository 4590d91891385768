"""Owns the predicted time of a group that equal ones share a launch with."""

from __future__ import annotations

from dataclasses import replace

from magweld.passes.tiling.cost import Cost, overlapped, waves
from magweld.targets.device import ARITHMETIC, LAUNCH_SECONDS, Device

# Bytes from which the tiles of a group keep all units busy: it is in no batch.
LARGE_BYTES = 512 * 1024


def batched_seconds(
    cost: Cost, grid: int, device: Device, level: str, members: int, shared: int = 0
) -> float:
    """Return what a group adds to a launch that it shares with equal ones.

    The launch is started once for all, units that a member alone would leave idle
    compute others, and what all read comes from the outermost memory once.

    Args:
        cost: Of the group alone.
        grid: How many tiles it has.
        device: What runs them.
        level: The memory that holds the tiles.
        members: How many groups share the launch.
        shared: Bytes of the tensors that all of them read.
    """
    units = max(1, device.level(level).units)
    fuller = waves(grid * members, units) / waves(grid, units)
    own = (level, ARITHMETIC)
    shares = [
        replace(share, seconds=share.seconds * fuller) if share.name in own else share
        for share in cost.shares
    ]
    again = min(cost.traffic, shared) * (1 - 1 / members)
    if again and shares[0].name not in own:
        first = shares[0].seconds * (1 - again / cost.traffic)
        shares[0] = replace(shares[0], seconds=first)
    gained = overlapped(cost.shares) - overlapped(shares)
    return cost.seconds - gained - LAUNCH_SECONDS * (1 - 1 / members)
