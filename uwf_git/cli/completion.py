"""`uwf completion`: the scripts by which a shell completes our words; click makes them."""

import click
from click.shell_completion import ShellComplete, get_completion_class

from uwf_git.cli.app.verb import verb
from uwf_git.cli.session import Session, write_stdout

PROGRAMS = ("uwf", "json-cas")
SHELLS = ("bash", "zsh", "fish")


@verb(
    'eval "$(uwf completion bash)"  # in ~/.bashrc',
    'eval "$(uwf completion zsh)"   # in ~/.zshrc, below compinit',
    "uwf completion fish | source   # in ~/.config/fish/config.fish",
)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(SHELLS))
def command(session: Session, shell: str) -> None:
    """Print the script that completes words in a shell.

    It completes the words of uwf and of json-cas, and threads (by id, or by a word of their status,
    workflow or task), workflows, roles and remotes. To enable it for good, add the line of your
    shell, as below, to the file that the shell reads when it starts. bash has to be 4.4 or newer.
    """
    del session  # a script is not a document: every format is the same
    write_stdout("".join(_script(program, shell) for program in PROGRAMS))


def _script(program: str, shell: str) -> str:
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    made = get_completion_class(shell)
    if made is None:
        raise LookupError(shell)
    # ShellComplete's own source(): bash's first runs bash to ask for its version.
    completion = made(click.Group(program), {}, program, variable)
    script = ShellComplete.source(completion).strip() + "\n"
    # click's script for fish cuts a meaning at its first comma.
    return script.replace('string split ","', 'string split -m 1 ","')
