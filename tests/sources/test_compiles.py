"""What is generated compiles with plain nvcc, without a warning."""

import random
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from kgen.errors import MissingTool
from kgen.sources.edited import read_source
from kgen.sources.render import render
from kgen.specs.spec import Spec
from kgen.specs.variants import checked, spelling
from kgen.toolchain import find_nvcc
from tests.strategies import resolved, valid_specs

pytestmark = pytest.mark.slow

GENERATED = Path(__file__).parents[2] / "generated"
INCLUDE = re.compile(r"^#include.*\n", re.MULTILINE)


@pytest.fixture(scope="module")
def nvcc() -> str:
    try:
        return str(find_nvcc().path)
    except MissingTool as missing:
        pytest.skip(str(missing))


def test_every_generated_file_compiles_with_plain_nvcc(nvcc: str, tmp_path: Path) -> None:
    files = {path: read_source(path).requires for path in sorted(GENERATED.glob("*.cu"))}
    for requires in sorted(set(files.values())):
        arch = [f"-arch={requires}"] if requires else []
        some = [str(path) for path, needed in files.items() if needed == requires]
        command = [nvcc, "--threads", "0", "-Werror", "all-warnings", *arch, "-c", *some]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.glob("*.o"))) == len(files)


@pytest.mark.parametrize(
    "variant",
    [
        "v7:update=online_tile",
        "t2:cache=shared,vec=2",
        "t1:vec=4",
        "v10:rows_at_once=2",
        "v7:stores=streaming,loads=streaming",
    ],
)
def test_no_constant_is_left_unused(nvcc: str, variant: str, tmp_path: Path) -> None:
    source = render(checked(variant))
    (tmp_path / source.filename).write_text(source.text)
    command = [nvcc, "-Werror", "all-warnings", "-ptx", source.filename]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_sampled_combinations_compile(nvcc: str, tmp_path: Path) -> None:
    """Many kernels in one translation unit, each in a namespace of its own."""
    sample = sampled_specs()
    parts = sorted({line for spec in sample for line in INCLUDE.findall(render(spec).text)})
    for number, spec in enumerate(sample):
        body = INCLUDE.sub("\n", render(spec).text)
        parts.append(f'namespace n{number} {{\n#line 1 "{spelling(spec)}"\n{body}}}\n')
    unit = tmp_path / "combinations.cu"
    unit.write_text("".join(parts))
    command = [nvcc, "-std=c++17", "-Werror", "all-warnings", "-arch=sm_90", "-ptx", unit.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(sample) >= 60


def sampled_specs() -> list[Spec]:
    """Return distinct valid specs for the device, the same on every run."""
    found: set[Spec] = set()

    @settings(
        max_examples=150,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(valid_specs())
    def collect(spec: Spec) -> None:
        if not spec.is_host:
            found.add(resolved(spec))

    collect()
    ordered = sorted(found, key=spelling)
    random.Random(0).shuffle(ordered)
    return ordered[:100]
