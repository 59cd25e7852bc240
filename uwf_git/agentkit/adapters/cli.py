"""uwf-cli: any command plays a role, without a shell; status 0 and some output make an answer."""

from uwf_git.agentkit.programs.command import CommandAdapter, ProgramCall, build_call, read_output
from uwf_git.agentkit.programs.playing import PROVIDER_VARIABLES, adapter_main
from uwf_git.agentkit.turn import AdapterQuestion, split_args
from uwf_git.agents.command_line import BadCommand, split_command
from uwf_git.errors import BadUsage

_ABOUT = """\
Play roles with any command that takes a prompt and prints an answer: 'llm -m gpt-4o',
'ollama run llama3'. The prompt is its stdin, unless a word of it holds {prompt_file}, which
becomes the path of a file with the prompt, or {prompt}, which becomes the prompt itself (at
most 128 KiB). No shell reads it; for pipes and variables: 'sh -c "…"'.

A command that fails, or prints nothing, has given no answer. It sees the variables of model
providers; name others by --env.
"""

_KEYS = {"command": "the command, if it is not given as a word"}


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    words = (*_split(question.settings.get("command", "")), *split_args(question.settings))
    return build_call(words, question.prompt, folder)


def _split(command: str) -> tuple[str, ...]:
    if not command.strip():
        raise BadUsage("there is no command", hint="uwf-cli 'llm -m gpt-4o'; see uwf-cli --help")
    try:
        return split_command(command)
    except BadCommand as error:
        raise BadUsage(error.message, hint=error.hint) from error


ADAPTER = CommandAdapter(
    name="cli", build=build, read=read_output, resumes=False, environ=PROVIDER_VARIABLES
)

main = adapter_main(
    ADAPTER,
    about=_ABOUT,
    keys=_KEYS,
    word="command",
    without=("model", "permission", "resume"),
)
