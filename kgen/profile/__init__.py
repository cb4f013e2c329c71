"""Profiles softmax calls with NVIDIA's Nsight Compute, and counts what can be without a GPU."""

from kgen.profile.job import Job
from kgen.profile.metrics import METRICS, Metric
from kgen.profile.profiles import Profile, profile_on_gpu, profiles_in, profiles_of_launches

__all__ = [
    "METRICS",
    "Job",
    "Metric",
    "Profile",
    "profile_on_gpu",
    "profiles_in",
    "profiles_of_launches",
]
