"""Owns ahead-of-time compilation for a GPU: an imported graph to an artifact."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

from magweld.aot.device import DeviceArtifact, DeviceKernel, Launch
from magweld.api import compile_service
from magweld.diagnostics import MagweldError
from magweld.frontend.importer.importer import ImportedGraph
from magweld.runtime.container import encode_request

_logger = logging.getLogger(__name__)

_TASK = "magweld.device_compiler:compile_for_device"


def compile_for_gpu(imported: ImportedGraph, target: str) -> DeviceArtifact:
    """Compile an imported graph for a GPU.

    Raises:
        MagweldError: The graph cannot be scheduled for the device.
    """
    while True:
        payload = encode_request(target, imported.text)
        data = json.loads(compile_service().run(_TASK, payload))
        if "unlowered" not in data:
            break
        if not set(data["unlowered"]) - set(imported.externals):
            nodes = ", ".join(data["unlowered"])
            raise MagweldError(f"the compiler refuses externals: {nodes}")
        imported = imported.with_externals(data["unlowered"])
    for entry in data["refused"]:
        _logger.warning("no code for %s: %s", entry["name"], entry["reason"])
    return DeviceArtifact(
        target,
        tuple(map(_kernel, data["kernels"])),
        {entry["name"]: entry["reason"] for entry in data["refused"]},
        data["values"],
        data["calls"],
    )


def _kernel(data: Any) -> DeviceKernel:
    codes = [
        {kind: base64.b64decode(text) for kind, text in entry.items()}
        for entry in data["codes"]
    ]
    launches = tuple(map(Launch.of, data["launches"]))
    return DeviceKernel(data["name"], launches, tuple(codes), data["report"])
