"""Writes an adopted file with a PyCUDA script that launches, verifies and times it without kgen."""

from __future__ import annotations

from pathlib import Path
from string import Template

from kgen.adopted.sidecar import IN_PLACE, initial_float, listed
from kgen.adopted.source import Adopted
from kgen.files import write_atomically
from kgen.limits import WARP_SIZE
from kgen.outputs.build import write
from kgen.sources.source import Source
from kgen.toolchain import CompileOptions

_TEMPLATE = Path(__file__).with_name("script.py.txt")


def export_adopted(source: Source, directory: Path) -> tuple[Path, Path]:
    """Write the device code into `directory`, and a script of its name; return both paths.

    The script needs numpy and PyCUDA, but not kgen. Raises UsageError for what cannot be written.
    """
    cu_path = write(source, directory)
    script_path = cu_path.with_suffix(".py")
    write_atomically(script_path, script(source, script_path.name))
    return cu_path, script_path


def script(source: Source, name: str) -> str:
    """Return the text of the script. Formulas are Python, and stand in it as they are."""
    contract = source.contract
    assert isinstance(contract, Adopted)
    sidecar = contract.sidecar
    is_log = sidecar.op == "log_softmax"
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        script_name=name,
        op=sidecar.op,
        expected="shifted - np.log(sums)" if is_log else "exps / sums",
        options=list(CompileOptions().flags()),
        constants="".join(f"{k} = {v}\n" for k, v in contract.constants.items()),
        sizes=sidecar.sizes or "True",
        launches="".join(_launch(contract, i) for i in range(len(sidecar.kernel))),
        buffers="".join(
            f'        "{name}": ({space.bytes}, {initial_float(space.initial)!r}),\n'.replace(
                "-inf)", 'float("-inf"))'
            )
            for name, space in sidecar.workspace.items()
        ),
        in_place=any(IN_PLACE in call.arguments.values() for call in sidecar.kernel),
        warp_size=WARP_SIZE,
    )


def _launch(contract: Adopted, number: int) -> str:
    """Return one launch: name, grid, block, shared bytes, and arguments with their formats."""
    call = contract.sidecar.kernel[number]
    symbol, parameters = contract.called[number]
    block = [str(size) for size in listed(call.block)]
    grid = [str(size) for size in listed(call.grid)]
    threads = " * ".join(f"({size})" for size in block)
    arguments = "".join(
        (
            f'            ("P", "{role}"),\n'
            if parameter.is_pointer
            else f'            ("{contract.format_of(parameter, call)}", {role}),\n'
        )
        for parameter, role in zip(parameters, call.arguments.values(), strict=True)
    )
    return (
        f"    block = {threads}\n"
        f'    launch(\n        "{symbol}",\n        ({", ".join([*grid, "1"][:2])}),\n'
        f"        ({', '.join([*block, '1', '1'][:3])}),\n        {call.shared},\n"
        f"        [\n{arguments}        ],\n    )\n"
    )
