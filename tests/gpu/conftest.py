"""The GPU, where there is one."""

import pytest

from kgen import gpu
from kgen.errors import MissingTool


@pytest.fixture
def device():
    """What is known of the GPU; skip the test where there is none."""
    try:
        return gpu.device_info()
    except MissingTool as missing:
        pytest.skip(str(missing))
