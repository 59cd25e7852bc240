"""Call any command that takes a prompt and prints an answer; no shell reads the command."""

import os
from collections.abc import Sequence

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AskFailed
from uwf_git.agentkit.programs.command_adapter import EndedProgram, ProgramCall
from uwf_git.agentkit.programs.failures import classify_words, find_last_words
from uwf_git.agentkit.programs.options import LONGEST_ARGUMENT_BYTES, clean_argument, write_file

_PROMPT, _PROMPT_FILE = "{prompt}", "{prompt_file}"
_FILE = "prompt.md"


def build_call(words: Sequence[str], prompt: str, folder: str) -> ProgramCall:
    """Build the call of a command with *prompt*, by its stdin unless its *words* say otherwise.

    ``{prompt_file}`` in a word becomes the path of a file in *folder* with the prompt, ``{prompt}``
    the prompt itself.

    Raises:
        AskFailed: the prompt is longer than an argument may be.
    """
    words = tuple(words)
    if not any(_PROMPT in word or _PROMPT_FILE in word for word in words):
        return ProgramCall(words, prompt.encode(errors="replace"))
    file = write_file(folder, _FILE, prompt)
    argument = clean_argument(prompt)
    # The prompt itself may contain {prompt_file}.
    argv = tuple(
        argument.join(w.replace(_PROMPT_FILE, file) for w in word.split(_PROMPT)) for word in words
    )
    if any(len(os.fsencode(word)) > LONGEST_ARGUMENT_BYTES for word in argv):
        message = "the prompt is too long for an argument (128 KiB)"
        raise AskFailed("too-long", message, hint="write {prompt_file}, or let it read stdin")
    return ProgramCall(argv)


def parse_output(ended: EndedProgram) -> AdapterAnswer:
    """Return what a command printed; raise AskFailed if it failed or printed nothing."""
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
