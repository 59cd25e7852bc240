from pathlib import Path

from uwf_git.store.git.scopes import find_program


def test_program_is_found_on_the_path_that_is_given(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    assert find_program("tool", {"PATH": str(tmp_path)}) is None
    program.chmod(0o755)
    assert find_program("tool", {"PATH": str(tmp_path)}) == str(program)
    assert find_program(str(program), {}) == str(program)
    assert find_program("tool", {"PATH": ""}) is None
