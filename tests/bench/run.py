"""The command line of the benchmark: `python tests/bench/run.py [PART …] [--quick] [--json]`.

A missed limit does not change the exit status 0, since a noisy machine must not fail a build.
README.md explains how to read the output.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FrameType

# Replace this directory, so its modules do not shadow others of the same name.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from bench.deep import FULL, QUICK, Bench  # noqa: E402 - the path above has to come first
from bench.machine import describe_machine  # noqa: E402 - as above
from bench.report import Table, render_facts, render_json, render_table  # noqa: E402 - as above
from bench.world import find_program, open_world  # noqa: E402 - as above

# Size comes before depth and read, whose steps leave objects behind in the same stores.
_NAMES = (
    *("cold", "rate", "size", "depth", "read", "library", "files", "fleet"),
    *("look", "crowd", "drivers", "kit", "containers", "page", "paint"),
)
PARTS: dict[str, Callable[[Bench], list[Table]]] = {
    name: getattr(import_module(f"bench.{name}"), f"measure_{name}") for name in _NAMES
}


def main(words: Sequence[str]) -> int:
    """Measure the parts that *words* name, or all of them."""
    parser = _parser()
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.parts if name not in PARTS]:
        parser.error(f"no part is called {unknown[0]}; there are {', '.join(PARTS)}")
    if not os.path.exists(find_program("uwf")):
        sys.stderr.write(f"error: no {find_program('uwf')}\nhint: `pip install .` first\n")
        return 1
    signal.signal(signal.SIGTERM, _end)
    scale = QUICK if asked.quick else FULL
    if asked.rounds:
        scale = scale._replace(rounds=asked.rounds)
    parts = [name for name in PARTS if name in (asked.parts or PARTS)]
    with open_world() as world:
        facts = describe_machine(world.root)
        if not asked.json:
            sys.stdout.write(render_facts(facts))
        bench = Bench(world, scale)
        measured: dict[str, list[Table]] = {}
        for name in parts:
            bench.tell(f"{name} …")
            measured[name] = PARTS[name](bench)
            if not asked.json:
                sys.stdout.write("".join("\n" + render_table(each) for each in measured[name]))
                sys.stdout.flush()
        facts["load_after"] = list(os.getloadavg())
    if asked.json:
        sys.stdout.write(render_json(facts, measured, is_quick=asked.quick))
    else:
        sys.stdout.write("\n" + render_facts({"load after": facts["load_after"]}))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", description="Measure what uwf costs.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="less of everything: about a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--rounds", type=_natural, metavar="N", help="rounds of cold processes")
    return parser


def _natural(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it has to be 1 at least")
    return number


def _end(_signal: int, _frame: FrameType | None) -> None:
    # As an exception, so that the temporary directory is removed.
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
