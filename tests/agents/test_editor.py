import os
from pathlib import Path

from programs import write_program

from uwf_git.agents.terminal import Terminal, edit_text


def editor(tmp_path: Path, script: str) -> dict[str, str]:
    path = write_program(tmp_path / "editor", script)
    return {"EDITOR": f"{path} --wait", "PATH": os.environ["PATH"]}


def test_text_is_what_the_editor_left(screen: tuple[int, Terminal], tmp_path: Path) -> None:
    environ = editor(tmp_path, 'test -t 0 && test "$1" = --wait && echo " and more" >>"$2"')

    assert edit_text(screen[1], "grün", environ=environ) == "grün and more\n"


def test_visual_comes_before_editor(screen: tuple[int, Terminal], tmp_path: Path) -> None:
    environ = editor(tmp_path, "exit 1") | {"VISUAL": "true"}

    assert edit_text(screen[1], "as it was", environ=environ) == "as it was"


def test_failing_editor_is_reported(screen: tuple[int, Terminal], tmp_path: Path) -> None:
    ours, terminal = screen

    assert edit_text(terminal, "lost?", environ=editor(tmp_path, "exit 7")) is None
    with open(ours, "rb", closefd=False) as shown:
        assert b"failed with exit status 7" in shown.readline()
