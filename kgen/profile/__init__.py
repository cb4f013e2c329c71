"""Profiles softmax calls with NVIDIA's Nsight Compute, and counts what can be without a GPU."""

from kgen.profile.job import ProfileTarget
from kgen.profile.metrics import METRICS, Metric
from kgen.profile.profiles import Profile, profile_on_gpu, profiles_in, profiles_of_launches

__all__ = [
    "METRICS",
    "Metric",
    "Profile",
    "ProfileTarget",
    "profile_on_gpu",
    "profiles_in",
    "profiles_of_launches",
]
