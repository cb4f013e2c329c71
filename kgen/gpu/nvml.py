"""What NVML says of the GPU: its identity, clocks and temperature."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from kgen.gpu.device import load_driver


@dataclass(frozen=True)
class Sensors:
    """Clock of the multiprocessors in MHz and temperature in degrees Celsius; None if unknown."""

    sm_mhz: int | None = None
    celsius: int | None = None


def sensors() -> Sensors:
    """Read the GPU's sensors now; what NVML does not tell stays None."""
    if not (nvml := _nvml()):
        return Sensors()
    handle = _handle(nvml)
    return Sensors(
        _told(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
        _told(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
    )


@functools.cache
def device_uuid() -> str:
    """Return the GPU's identity, like `GPU-1b0c...`, or '' if NVML does not tell."""
    if not (nvml := _nvml()):
        return ""
    return _told(nvml, nvml.nvmlDeviceGetUUID, _handle(nvml)) or ""


@functools.cache
def _nvml() -> Any:
    """Return pynvml, initialised; None where the package or the library is missing."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        _handle(pynvml)
    except pynvml.NVMLError:
        return None
    return pynvml


@functools.cache
def _handle(nvml: Any) -> Any:
    # By address on the bus, as CUDA_VISIBLE_DEVICES gives CUDA numbers that NVML does not share.
    return nvml.nvmlDeviceGetHandleByPciBusId(load_driver().Device(0).pci_bus_id())


def _told(nvml: Any, ask: Any, *arguments: Any) -> Any:
    try:
        return ask(*arguments)
    except nvml.NVMLError:
        return None
