"""uwf-cli: any command plays a role.

Owns: how a prompt gets to a command about which nothing is known, and what its end means.
Knows nothing of: any program.
Always true: no shell reads the command. Its answer is what it printed, if its exit status is 0
and it printed anything: nothing more can be known of it.
"""

import os
import sys

from uwf_git.agentkit.adapter import Answer, Asked, NoAnswer
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, Ended, adapter_main
from uwf_git.agentkit.failure_words import classify_words, find_last_words
from uwf_git.agentkit.provider_variables import PROVIDER_VARIABLES
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

# Linux: 128 KiB with the zero byte at the end.
_LONGEST_ARGUMENT_BYTES = 131_071


def build(asked: Asked, folder: str) -> Command:
    """Build the call that asks *asked*; if the command wants a file, it is put into *folder*.

    Raises:
        BadUsage: there is no command, or it is none.
        NoAnswer: the prompt is longer than an argument may be.
    """
    words = (*_split(asked.settings.get("command", "")), *split_args(asked.settings))
    if not any(_PROMPT in word or _PROMPT_FILE in word for word in words):
        return Command(words, asked.prompt.encode(errors="replace"))
    file = os.path.abspath(os.path.join(folder, _FILE))
    with open(file, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(asked.prompt)
    prompt = asked.prompt.replace("\0", "").encode(errors="replace").decode()
    # The prompt itself may speak of {prompt_file}.
    argv = tuple(
        prompt.join(w.replace(_PROMPT_FILE, file) for w in word.split(_PROMPT)) for word in words
    )
    if any(len(os.fsencode(word)) > _LONGEST_ARGUMENT_BYTES for word in argv):
        message = "the prompt is too long for an argument (128 KiB)"
        raise NoAnswer("too-long", message, hint="write {prompt_file}, or let it read stdin")
    return Command(argv)


def parse(ended: Ended) -> Answer:
    """Take what it printed.

    Raises:
        NoAnswer: it failed, or printed nothing.
    """
    answer = Answer(text=ended.run.stdout.decode(errors="replace"))
    status = ended.run.exit_code
    words, _ = find_last_words(ended.run.stderr)
    if status:
        message = f"the command ended with exit status {status}" + (f": {words}" if words else "")
        kind = classify_words(words)
        raise NoAnswer("crashed" if kind == "model-error" else kind, message, partial=answer)
    if not answer.text.strip():
        message = "the command ended well, but printed nothing" + (f": {words}" if words else "")
        raise NoAnswer("no-result", message, partial=answer)
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
