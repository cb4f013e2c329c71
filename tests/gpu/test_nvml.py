"""What NVML tells, and that a benchmark goes on where it tells nothing."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from kgen.gpu import nvml
from kgen.gpu.nvml import Sensors, device_uuid, sensors


class NVMLError(Exception):
    pass


def fake_nvml(**functions):
    module = ModuleType("pynvml")
    module.NVMLError, module.NVML_CLOCK_SM, module.NVML_TEMPERATURE_GPU = NVMLError, "sm", "gpu"
    known = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByPciBusId": lambda address: f"handle of {address}",
        "nvmlDeviceGetClockInfo": lambda handle, clock: {("handle of 0:1", "sm"): 1980}[
            handle, clock
        ],
        "nvmlDeviceGetTemperature": lambda handle, sensor: {("handle of 0:1", "gpu"): 41}[
            handle, sensor
        ],
        "nvmlDeviceGetUUID": lambda handle: "GPU-1b0c",
    }
    for name, function in (known | functions).items():
        setattr(module, name, function)
    return module


def fails(*arguments):
    raise NVMLError("Not Supported")


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """One GPU at address 0:1, and nothing known of it from before."""
    gpu = SimpleNamespace(pci_bus_id=lambda: "0:1")
    monkeypatch.setattr(nvml, "load_driver", lambda: SimpleNamespace(Device=lambda number: gpu))
    for function in (nvml._nvml, nvml._handle, device_uuid):
        function.cache_clear()
    yield
    for function in (nvml._nvml, nvml._handle, device_uuid):
        function.cache_clear()


def test_clock_temperature_and_identity_of_the_gpu_in_use(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    assert sensors() == Sensors(sm_mhz=1980, celsius=41)
    assert device_uuid() == "GPU-1b0c"


def test_what_is_not_told_stays_unknown(monkeypatch):
    module = fake_nvml(nvmlDeviceGetTemperature=fails, nvmlDeviceGetUUID=fails)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert sensors() == Sensors(sm_mhz=1980, celsius=None)
    assert device_uuid() == ""


@pytest.mark.parametrize(
    "module",
    [None, fake_nvml(nvmlInit=fails), fake_nvml(nvmlDeviceGetHandleByPciBusId=fails)],
    ids=["no package", "no library", "another GPU"],
)
def test_without_nvml_nothing_is_known(monkeypatch, module):
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert sensors() == Sensors() and device_uuid() == ""
