"""Real input: what a classifier of handwritten digits says, through the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from kgen import cpu
from kgen.errors import MissingTool

pytestmark = pytest.mark.slow


class Digits(NamedTuple):
    """The logits of test images (images x 10), the digits they show, and the file of the logits."""

    logits: NDArray[np.float32]
    labels: NDArray[np.int64]
    path: Path


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    """Train on one half of scikit-learn's digits and keep the logits of the other."""
    images, labels = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(
        images / 16, labels, test_size=0.5, random_state=0
    )
    # Little regularisation: confident logits, far apart, and some mistakes.
    model = LogisticRegression(C=100, max_iter=200).fit(x_train, y_train)
    logits = model.decision_function(x_test).astype(np.float32)
    path = tmp_path_factory.mktemp("digits") / "logits.npy"
    np.save(path, logits)
    return Digits(logits, y_test, path)


def kgen_run(variant: str, path: Path) -> NDArray[np.float32]:
    """Return what `kgen run` writes for the matrix in `path`."""
    try:
        cpu.find_cxx()
    except MissingTool as missing:
        pytest.skip(str(missing))
    output = path.with_name("y.npy")
    output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "kgen", "run", variant]
    command += ["--input", str(path), "--output", str(output)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    y: NDArray[np.float32] = np.load(output)
    return y


def test_the_logits_are_those_of_a_useful_classifier(digits: Digits) -> None:
    assert digits.logits.shape == (899, 10) and np.ptp(digits.logits) > 30
    assert 0.9 < (digits.logits.argmax(axis=1) == digits.labels).mean() < 1


# Rows of 10 floats: every second one starts off a 16-byte boundary and has a tail of two.
@pytest.mark.parametrize("variant", ["v8", "v7", "t1", "cpu", "k1", "v6_double", "v9"])
def test_probabilities_of_digits(digits: Digits, variant: str) -> None:
    y = kgen_run(variant, digits.path)
    expected = scipy.special.softmax(digits.logits.astype(np.float64), axis=1)
    assert y.dtype == np.float32 and y.shape == digits.logits.shape
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(y.sum(axis=1, dtype=np.float64), 1, atol=2e-6)
    np.testing.assert_array_equal(y.argmax(axis=1), digits.logits.argmax(axis=1))


@pytest.mark.parametrize("variant", ["v5", "c1"])
def test_digits_along_long_rows(digits: Digits, variant: str) -> None:
    """Transposed: 10 rows, each the scores that one digit gets over all images."""
    path = digits.path.with_name("transposed.npy")
    np.save(path, digits.logits.T)
    expected = scipy.special.softmax(digits.logits.T.astype(np.float64), axis=1)
    y = kgen_run(variant, path)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=2e-6 * expected.max())
