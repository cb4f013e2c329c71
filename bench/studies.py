"""Prints the studies' tables and verdicts in Markdown: measured now, or read from a file.

usage: python bench/studies.py [FILE.json]     (kgen reproduce --out FILE.json makes the file)
"""

from __future__ import annotations

import sys
from pathlib import Path

from kgen.cli.reproduce import reproduced, require_sound
from kgen.studies.markdown import markdown
from kgen.studies.result import read_result

if __name__ == "__main__":
    result = read_result(Path(sys.argv[1])) if sys.argv[1:] else reproduced()
    print(markdown(result), end="")
    require_sound(result)
