"""uwf-cli: any command plays a role.

No shell reads the command. Its output is the answer if its exit status is 0 and it printed
anything; nothing more is known about it.
"""

import os
import sys

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agentkit.programs.command_adapter import (
    CommandAdapter,
    EndedProgram,
    ProgramCall,
    adapter_main,
)
from uwf_git.agentkit.programs.failures import classify_words, find_last_words
from uwf_git.agentkit.programs.options import LONGEST_ARGUMENT_BYTES, clean_argument, write_file
from uwf_git.agentkit.programs.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.settings import split_args
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

_PROMPT, _PROMPT_FILE = "{prompt}", "{prompt_file}"
_FILE = "prompt.md"


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    """Build the call for *question*; a file for the prompt goes into *folder*.

    Raises:
        AskFailed: the prompt is longer than an argument may be.
    """
    words = (*_split(question.settings.get("command", "")), *split_args(question.settings))
    if not any(_PROMPT in word or _PROMPT_FILE in word for word in words):
        return ProgramCall(words, question.prompt.encode(errors="replace"))
    file = write_file(folder, _FILE, question.prompt)
    prompt = clean_argument(question.prompt)
    # The prompt itself may contain {prompt_file}.
    argv = tuple(
        prompt.join(w.replace(_PROMPT_FILE, file) for w in word.split(_PROMPT)) for word in words
    )
    if any(len(os.fsencode(word)) > LONGEST_ARGUMENT_BYTES for word in argv):
        message = "the prompt is too long for an argument (128 KiB)"
        raise AskFailed("too-long", message, hint="write {prompt_file}, or let it read stdin")
    return ProgramCall(argv)


def parse(ended: EndedProgram) -> AdapterAnswer:
    """Return its output; raise AskFailed if it failed or printed nothing."""
    answer = AdapterAnswer(text=ended.run.stdout.decode(errors="replace"))
    status = ended.run.exit_code
    words, _ = find_last_words(ended.run.stderr)
    if status:
        message = f"the command ended with exit status {status}" + (f": {words}" if words else "")
        kind = classify_words(words)
        raise AskFailed("crashed" if kind == "model-error" else kind, message, partial=answer)
    if not answer.text.strip():
        message = "the command ended well, but printed nothing" + (f": {words}" if words else "")
        raise AskFailed("no-result", message, partial=answer)
    return answer


def _split(command: str) -> tuple[str, ...]:
    if not command.strip():
        raise BadUsage("there is no command", hint="uwf-cli 'llm -m gpt-4o'; see uwf-cli --help")
    try:
        return split_command(command)
    except BadCommand as error:
        raise BadUsage(error.message, hint=error.hint) from error


ADAPTER = CommandAdapter(
    name="cli", programs=(), build=build, parse=parse, environ=PROVIDER_VARIABLES
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS, word="command")

if __name__ == "__main__":
    sys.exit(main())
