"""Files for tests of adopted kernels, and how they are adopted."""

from __future__ import annotations

from pathlib import Path

from kgen.adopted.guess import Guess, guess
from kgen.adopted.piece import Answers
from kgen.adopted.source import adopted_source, read_cuda
from kgen.adopted.syntax import CudaFile
from kgen.adopted.tried import settled
from kgen.sources.source import Source

KERNELS = Path(__file__).parent / "kernels"


def adopted(name: str) -> Source:
    """Return a file of the folder as `kgen adopt` without an option would have it."""
    path = KERNELS / f"{name}.cu"
    guessed = guess(read_cuda(path), path.name, Answers())
    assert not guessed.questions
    return adopted_source(path, settled(path, guessed).sidecar)


def guessed(text: str, **answers: object) -> Guess:
    """Return what is guessed of a file with this text."""
    return guess(CudaFile(text), "k.cu", Answers(**answers))  # type: ignore[arg-type]
