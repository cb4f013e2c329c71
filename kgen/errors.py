"""The errors that a user can cause or meet, each with the exit code the command line ends with.

0 is success; 1 means a check failed; 2 means the request was wrong; 3 means that this machine lacks
something: a tool, or memory, space and the like. The message of every error is one sentence with
the offending values and what to do.
"""


class KgenError(Exception):
    """Base of every error that kgen reports without a traceback."""

    exit_code = 1


class UsageError(KgenError):
    """The request is wrong: an unknown version, an invalid combination, an unreadable file."""

    exit_code = 2


class CheckFailed(KgenError):
    """A kernel or a generated file is not what it should be."""

    exit_code = 1


class CompileFailed(CheckFailed):
    """A compiler rejected a source; the message carries the compiler's own words."""


class KernelFault(CheckFailed):
    """A kernel broke CUDA's rules while it ran; the message names the line of the `.cu`.

    `line` is that line, 0 when it is unknown.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class LaunchRefused(KernelFault):
    """CUDA does not take a launch: too many threads in a block, or too much shared memory."""


class KernelTimeout(KernelFault):
    """A kernel ran longer than it may; the message names the line where it was."""


class MissingTool(KgenError):
    """A compiler, library or device is not on this machine; the message says how to get it."""

    exit_code = 3


class MachineTrouble(KgenError):
    """This machine had too little of something (memory, space, processes): no verdict on a kernel.

    The next try may succeed, with nothing changed but what else runs.
    """

    exit_code = 3
