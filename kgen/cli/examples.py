"""An example or two of every command, for the end of its --help."""

from __future__ import annotations

# Command -> what is typed behind `kgen`, and what it is for.
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "list": (("list", "what there is"), ("list --json", "the same for a program")),
    "show": (
        ("show v9", "why it is as it is, its axes and its launch"),
        ("show v7 --items 4 --rows 128 --cols 2048", "its launch on a shape"),
    ),
    "explain": (
        ("explain v5:threads=48", "why it is refused, and what is near"),
        ("explain v7:items=1 --cols 4096", "whether it runs on a row length"),
        ("explain v13 --arch sm_80", "what an older GPU lacks of it"),
    ),
    "diff": (
        ("diff v6 v7", "axes and sources of two versions"),
        ("diff v7:items=4 v7:items=8 --body", "without the files' headers"),
    ),
    "build": (
        ("build v7 --items 4", "writes generated/softmax_v7_items4.cu"),
        ("build v8:vec=4 v9 --arch sm_75,sm_90 --out mine", "for two GPUs"),
        ("build --all --check", "whether generated/ is up to date"),
    ),
    "adopt": (
        ("adopt softmax.cu", "writes softmax.kgen.toml: what is launched, and how"),
        ("adopt softmax.cu --kernel softmax_v3", "one of several kernels"),
    ),
    "place": (("place softmax.cu", "the nearest version, and what it does differently"),),
    "sass": (("sass v7 --arch sm_90", "the machine code"),),
    "export": (("export v7 --items 4 --out mine", "a .cu and a script that times it"),),
    "run": (
        ("run v7 --rows 16 --cols 4096", "on an input that is made"),
        ("run v7 --input x.npy --output y.npy --on gpu", "on one's own"),
    ),
    "check": (
        ("check v7 v8:vec=4", "boundary sizes, every kind of input"),
        ("check v5 --memory --races", "also every access"),
        ("check v5 --rows 3 --cols 1000", "one shape"),
    ),
    "count": (("count v5 v6 v7 --rows 1024 --cols 4096", "side by side"),),
    "profile": (
        ("profile v5 v8 --rows 1025 --cols 257", "by Nsight Compute"),
        ("profile v5 v8 --on cpu", "what can be had without a GPU"),
    ),
    "mutate": (
        ("mutate v5", "each mistake, and what catches it"),
        ("mutate --summary", "numbers of all named versions; takes minutes"),
    ),
    "bench": (
        ("bench v3 v5 v7 --rows 1024 --cols 4096 --peers", "beside others' softmax"),
        ("bench v5 v7 --baseline v5 --fail-if-slower 2%", "for a script to judge"),
        ("bench v7 v11 --dtype bfloat16 --peers", "of 16 bits, and peers too"),
        ("bench v5 v7 --on cpu", "verified and counted without a GPU"),
    ),
    "reproduce": (
        ("reproduce", "all studies on this GPU"),
        ("reproduce --on cpu --study report", "counts of one, without a GPU"),
    ),
    "sweep": (
        ("sweep --rows 1024 --cols 257,4096", "what is likely to be fast"),
        ("sweep --cols 4096 --dtype bfloat16 --out-dtype float32", "of two types"),
        ("sweep --variants v5,v7 --axis threads=64..512:64 --axis vec=1,4", ""),
        ("sweep --all --where 'threads_per_row <= cols' --dry-run", "only the plan"),
        ("sweep --variants v5,v8 --rows 256 --on cpu", "ranked by a model"),
        ("sweep softmax.cu --constant BLOCK=64,128,256", "of an adopted file"),
    ),
    "results": (
        ("results --variant 'v7*' --cols 4096", "some of the rows"),
        ("results --run latest --csv", "the newest, for a spreadsheet"),
    ),
    "report": (("report --run latest", "what the newest rows mean"),),
    "tune": (
        ("tune --out tuned.json", "keeps the winners"),
        ("tune --out tuned.json --lookup 1024x4096", "the variant for a shape"),
        ("tune --lookup 1024x4096 --dtype bfloat16", "and for a type"),
    ),
    "doctor": (("doctor", "what this machine has and lacks"),),
    "completion": (("completion zsh", "the script for zsh"),),
}


def epilog(command: str) -> str:
    """Return what stands under a command's options: its examples, each a line."""
    # Typer joins single lines and keeps paragraphs apart.
    lines = ["Examples:"]
    for arguments, purpose in EXAMPLES[command]:
        lines.append(f"  kgen {arguments}" + (f"  # {purpose}" if purpose else ""))
    return "\n\n".join(lines)
