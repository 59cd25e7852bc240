"""The hooks of a store, and what git tells them of a push."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from programs import write_program
from refusing import refuses

from uwf_git.errors import BadUsage
from uwf_git.model.names import Oid
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.hook_files import (
    MOST_INPUT_BYTES,
    SHIMS,
    RefUpdate,
    check_hooks,
    find_unpinned,
    install_hooks,
    is_ours,
    ours_among,
    parse_updates,
)

CASES = Path(__file__).parent / "made_up" / "hooks.json"


HOOKS = Path(__file__).parents[3] / "hooks"
NO_CONFIG = GitConfig({})


@pytest.mark.parametrize("name", SHIMS)
def test_source_holds_the_same_text(name: str) -> None:
    assert (HOOKS / name).read_text() == SHIMS[name]
    assert os.access(HOOKS / name, os.X_OK)


@pytest.mark.parametrize("name", SHIMS)
def test_shim_is_a_program_for_any_shell(name: str) -> None:
    for shell in ("sh", "bash"):
        assert subprocess.run([shell, "-n", HOOKS / name], check=False).returncode == 0
    assert max(map(len, SHIMS[name].splitlines())) <= 100


def run(hook: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a hook with nothing but *environ*."""
    return subprocess.run(
        [hook], env=environ, cwd=hook.parent, input="", capture_output=True, text=True, check=False
    )


def uwf_in(folder: Path) -> str:
    """Write a program that prints its arguments, and return its path."""
    folder.mkdir()
    return write_program(folder / "uwf", 'echo "called $0 $*"\nexit 7')


@pytest.mark.parametrize("name", SHIMS)
def test_named_uwf_goes_before_that_on_the_path(name: str, tmp_path: Path) -> None:
    named, found = uwf_in(tmp_path / "a"), uwf_in(tmp_path / "b")

    both = run(HOOKS / name, UWF=named, PATH=os.path.dirname(found))
    one = run(HOOKS / name, PATH=os.path.dirname(found))

    assert (both.returncode, both.stdout) == (7, f"called {named} hook {name}\n")
    assert (one.returncode, one.stdout) == (7, f"called {found} hook {name}\n")


def test_push_is_refused_without_uwf(tmp_path: Path) -> None:
    ran = run(HOOKS / "pre-receive", PATH=str(tmp_path))

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: no uwf was found")


def test_uwf_without_what_it_needs_is_none(tmp_path: Path) -> None:
    python = write_program(tmp_path / "python", f'exec {sys.executable} -S "$@"')
    path, _other = install_hooks(str(tmp_path), python=python)

    ran = run(Path(path), PATH="", PYTHONPATH=str(HOOKS.parent))

    assert (ran.returncode, ran.stderr.partition(" to check")[0]) == (1, "error: no uwf was found")


def test_missing_uwf_after_a_push_is_a_warning(tmp_path: Path) -> None:
    ran = run(HOOKS / "post-receive", PATH=str(tmp_path))

    assert ran.returncode == 0
    assert ran.stderr.startswith("warning: no uwf was found")


def test_interpreter_may_have_any_name(tmp_path: Path) -> None:
    python = tmp_path / 'it\'s "$HOME" `x` \\'
    write_program(python, '[ "$2" = -c ] || echo "python $*"')

    path, _other = install_hooks(str(tmp_path), python=str(python))

    assert run(Path(path), PATH="").stdout == "python -P -m uwf_git hook pre-receive\n"


def test_module_in_the_repository_is_not_taken_for_ours(tmp_path: Path) -> None:
    path, _other = install_hooks(str(tmp_path), python=sys.executable)
    (tmp_path / "hooks" / "uwf_git").mkdir()
    (tmp_path / "hooks" / "uwf_git" / "__main__.py").write_text("print('hijacked')")

    assert run(Path(path), PATH="").stdout == ""


@pytest.mark.parametrize("content", ["#!/bin/sh\nexit 0\n", "", None])
def test_foreign_hook_is_refused(content: str | None, tmp_path: Path) -> None:
    hook = tmp_path / "hooks" / "post-receive"
    hook.parent.mkdir()
    if content is None:
        hook.symlink_to("/nowhere")
    else:
        hook.write_text(content)

    with refuses("foreign-hook", match="post-receive exists already") as refused:
        check_hooks(str(tmp_path), NO_CONFIG)

    assert "`uwf hook post-receive`" in str(refused.value.hint)


@pytest.mark.parametrize("target", ["others", "nowhere"])
def test_folder_that_is_a_link_is_refused(target: str, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / "hooks").symlink_to(tmp_path / target)

    with refuses("hooks-linked", match="hooks is a symbolic link") as refused:
        check_hooks(str(tmp_path), GitConfig({"core.hookspath": ["hooks"]}))

    assert f"`rm {tmp_path}/hooks`" in str(refused.value.hint)


def test_empty_hooks_path_is_another_one(tmp_path: Path) -> None:
    with refuses("hooks-elsewhere"):
        check_hooks(str(tmp_path), GitConfig({"core.hookspath": [""]}))


def test_store_whose_hooks_git_does_not_run_is_told(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[core]\n\thooksPath = /etc/hooks\n")
    assert find_unpinned(str(tmp_path)) is None  # it has no hooks of ours

    install_hooks(str(tmp_path), python="")

    assert find_unpinned(str(tmp_path)) == (
        "its core.hooksPath is /etc/hooks, so git runs none of its hooks"
    )


A, B = Oid("a" * 40), Oid("b" * 40)


def test_updates_and_refs_of_ours(golden: Callable[[str, str], None]) -> None:
    answers = {
        "parse_updates": lambda content: parse_updates(content.encode()),
        "is_ours": lambda name: (is_ours(name), len(ours_among([RefUpdate(name, None, A)]))),
    }
    golden("store/hooks.txt", tell_cases(CASES, answers))


def test_too_much_is_refused() -> None:
    with refuses("bad-hook-input", match="too many refs"):
        parse_updates(bytes(MOST_INPUT_BYTES + 1))


@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(BadUsage):
        assert all(update.name.startswith("refs/") for update in parse_updates(content))
