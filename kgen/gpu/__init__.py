"""Runs and times kernels on the GPU, through PyCUDA, which nothing else in kgen imports.

The cubin that `kgen.toolchain` compiled is what gets loaded, so what was inspected is what runs.
"""

from kgen.gpu.device import DeviceInfo, device_info
from kgen.gpu.execute import run, source_module_options

__all__ = ["DeviceInfo", "device_info", "run", "source_module_options"]
