import subprocess
import sys

from uwf_git.commands.mcp_place import McpPlace
from uwf_git.store.store import memory_store


def test_place_knows_what_it_was_told() -> None:
    place = McpPlace(memory_store, thread="T")

    assert (place.thread, place.role, place.head, place.step_dir) == ("T", None, None, None)


def test_whoever_builds_the_server_does_not_pay_for_the_store() -> None:
    program = "import sys, uwf_git.commands.mcp_tools; print(sorted({'dulwich'} & {*sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert ran.stdout == b"[]\n"
