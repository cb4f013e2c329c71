"""The command that teaches a shell to complete, and the answers to what the shell then asks.

Typer's own scripts do not fit: bash takes `v7:items=4` for five words, and each puts a blank
behind `v7:items=`.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import Annotated

import click
import typer
from click import shell_completion
from click.shell_completion import CompletionItem, ShellComplete


class Shell(StrEnum):
    """The shells that are taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell.")] = Shell.BASH,
) -> None:
    """Print what makes a shell complete commands, versions, axes and their values by Tab.

    In ~/.bashrc: eval "$(kgen completion bash)"; in ~/.zshrc, behind compinit: eval "$(kgen
    completion zsh)"; in ~/.config/fish/config.fish: kgen completion fish | source
    """
    root = click.get_current_context().find_root()
    print(_COMPLETES[shell](root.command, {}, "kgen", "_KGEN_COMPLETE").source())


class _Bash(ShellComplete):
    """Bash, which breaks words at `:` and `=` and completes only what is behind them."""

    name = "bash"
    # A word that is over brings its blank along: `v7:items=` goes on, and so does `v7:items=4`.
    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n'
    COMPREPLY=($(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=complete_bash "$1" 2>/dev/null))
}
complete -o default -o nospace -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one at the cursor, and what there is of that one."""
        line = os.environ["COMP_LINE"]
        words = shell_completion.split_arg_string(line)[1:]
        return (words, "") if not words or line[-1:].isspace() else (words[:-1], words[-1])

    def complete(self) -> str:
        """Return the words that fit, each without what bash takes for words before it."""
        arguments, incomplete = self.get_completion_args()
        breaks = os.environ["COMP_WORDBREAKS"]
        broken = max((incomplete.rfind(mark) for mark in breaks), default=-1) + 1
        option = re.match(r"--[\w-]+=", incomplete)
        start = option[0] if option else ""  # it is no part of the answers
        items = map(self.format_completion, self.get_completions(arguments, incomplete))
        return "\n".join(f"{start}{item}"[broken:] for item in items if item)

    def format_completion(self, item: CompletionItem) -> str:
        """Return a word, with a blank if it is over; nothing for files, which bash knows itself."""
        if item.type != "plain":
            return ""
        word = str(item.value)
        return word if "=" in word or word.endswith("/") else f"{word} "


class _Zsh(_Bash):
    name = "zsh"
    source_template = """\
%(complete_func)s() {
    local -a found
    found=("${(@f)$(COMP_LINE="${words[1,$CURRENT]}" COMP_WORDBREAKS= \\
        %(complete_var)s=complete_zsh %(prog_name)s 2>/dev/null)}")
    [[ -n $found ]] && compadd -Q -U -S '' -a found || _files
}
compdef %(complete_func)s %(prog_name)s
"""


class _Fish(shell_completion.FishComplete):
    source_template = shell_completion.FishComplete.source_template.replace(
        "fish_complete", "complete_fish"
    )


_COMPLETES: dict[Shell, type[ShellComplete]] = {
    Shell.BASH: _Bash,
    Shell.ZSH: _Zsh,
    Shell.FISH: _Fish,
}
for _complete in _COMPLETES.values():
    shell_completion.add_completion_class(_complete)
