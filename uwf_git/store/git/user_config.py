"""Set a setting in the user's git config, by git: the only write outside a store."""

from collections.abc import Mapping

from uwf_git.git_environment import without_local_variables
from uwf_git.store.git.find_program import find_program
from uwf_git.store.git.program import ProgramFailed, run_program


def set_user_config(environ: Mapping[str, str], name: str, value: str) -> None:
    git = find_program("git", environ)
    hint = f"put it into your ~/.gitconfig yourself: {name}"
    if git is None:
        raise ProgramFailed("git", "is not on the PATH", hint=hint)
    argv = [git, "config", "--global", "--replace-all", name, value]
    ran = run_program(argv, without_local_variables(environ))
    if ran.status != 0:
        raise ProgramFailed("git config --global", f"failed: {ran.last_line}", hint=hint)
