import subprocess
import sys

from fresh_store import fresh_store

from uwf_git.commands.mcp.server import McpPlace


def test_place_has_its_values() -> None:
    place = McpPlace(fresh_store, thread="T")

    assert (place.thread, place.role, place.head, place.step_dir) == ("T", None, None, None)


def test_building_the_server_does_not_import_the_store() -> None:
    program = "import sys, uwf_git.commands.mcp.server; print(sorted({'dulwich'} & {*sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert ran.stdout == b"[]\n"
