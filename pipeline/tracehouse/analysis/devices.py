"""The device that a trace ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracehouse.formulas.arch import Arch, recognise


def device_of(envelope: Mapping[str, Any]) -> Arch | None:
    """Return the peaks of the device that all entries of deviceProperties agree on.

    None where there are none, one is not recognised, or they differ.
    """
    listed = envelope.get("deviceProperties")
    devices = listed if isinstance(listed, list) else []
    found = {
        None if arch is None else arch.name: arch
        for arch in (recognise(device) if isinstance(device, dict) else None for device in devices)
    }
    return next(iter(found.values())) if len(found) == 1 else None
