"""Runs and times kernels on the GPU, through PyCUDA, which nothing else in kgen imports.

The cubin that `kgen.toolchain` compiled is what gets loaded, so what was inspected is what runs.
"""

from kgen.gpu.device import DeviceInfo, device_info
from kgen.gpu.execute import Timing, run, source_module_options, time_launches

__all__ = [
    "DeviceInfo",
    "Timing",
    "device_info",
    "run",
    "source_module_options",
    "time_launches",
]
