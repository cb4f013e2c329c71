"""Sources as they were at a revision that git has, of the repository that the user stands in."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

from kgen.errors import MissingTool, UsageError
from kgen.overlay import OURS, Overlay
from kgen.processes import run
from kgen.sources.edited import source_of
from kgen.sources.render import render
from kgen.sources.source import Source
from kgen.specs.variants import checked
from kgen.specs.versions import VERSIONS
from kgen.text import did_you_mean, names_a_file

GENERATED = "generated"


def source_at(revision: str, name: str, overlay: Overlay = OURS) -> Source:
    """Return the source that a file held at a revision, or a variant's file in generated/.

    A file is named from the top of the repository, as git does it, or with `./` from here.
    Raises UsageError when git has no such revision or file there, or it is no source of kgen's;
    MissingTool without git.
    """
    _require(revision)
    path = name
    if not names_a_file(name):
        path = f"./{GENERATED}/{render(checked(name, overlay)).filename}"
    ran = _git("cat-file", "blob", f"{revision}:{path}")
    if ran.returncode:
        raise UsageError(f"git has no {revision}:{path}{_why(ran)}")
    return source_of(ran.stdout.removeprefix("\ufeff"), Path(f"{revision}:{path}"), overlay)


def _require(revision: str) -> None:
    ran = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if ran.returncode:
        raise UsageError(
            f"{revision!r} is no revision of git{_why(ran)}, and no version"
            f"{did_you_mean(revision, VERSIONS)}"
        )


def _git(*arguments: str) -> CompletedProcess[str]:
    try:
        return run(["git", *arguments])
    except OSError as error:
        raise MissingTool(f"revisions are git's, which does not run: {error.strerror}") from None


def _why(ran: CompletedProcess[str]) -> str:
    reason = ran.stderr.partition("\n")[0].removeprefix("fatal: ")
    return f" ({reason})" if reason else ""
