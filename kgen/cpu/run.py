"""Runs a launch plan on the CPU and says which of CUDA's rules a kernel broke."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgen.cpu.buffers import Buffers, Region
from kgen.cpu.build import build
from kgen.cpu.compiler import display_name
from kgen.errors import KernelFault, UsageError
from kgen.launch import Launch, LaunchPlan
from kgen.source import Source

SCHEDULES = ("in_order", "reversed", "warp_greedy", "random")

# How many OS threads run the blocks of a launch, and how many CUDA threads make that worth while.
WORKERS = 2
MIN_THREADS_FOR_WORKERS = 16384
