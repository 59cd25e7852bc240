"""uwf-mock: a script plays a role.

The same script, role, visit and attempt give the same bytes, log and end. The store is opened only
if the script depends on the number of the visit.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from uwf_git.agentkit.arguments import parse_arguments
from uwf_git.agentkit.context import AgentContext
from uwf_git.agentkit.loading import load_context
from uwf_git.agentkit.programs.mock_script import MockAttempt, MockScript, bad_script, parse_script
from uwf_git.errors import BadUsage, UwfError

_HELP = """\
Usage: uwf-mock SCRIPT THREAD-ID

Play roles from a script, to try a workflow out or to test one: YAML or JSON, for each
role the list of its turns. Turn n is the role's n-th visit; the last one repeats.
The engine appends the thread id; `-t THREAD-ID -r ROLE` is understood as well.

    planner:
      - meta: {plan: [fix it]}
        content: Here is what to do.
    reviewer:
      - meta: {approved: false}
      - - {exit: 1, stderr: no model answered}    # a turn of several attempts
        - meta: {approved: true}

Example: uwf thread start solve-issue -p try --agent "uwf-mock $PWD/script.yaml"

An attempt may hold, in the order in which it happens:
  stderr        a text for the log
  delay         seconds to wait
  flood         so many bytes to print on stdout
  meta, content, usage, state, session
                the result; form: json (default), front-matter or bare
  stdout, stdoutBase64
                what to print instead of a result
  exit, signal, hang
                how to end: a status, killed by a signal (TERM or 15), or never

EXIT STATUS: what the script says, by default 0; 1 the script is wrong, or does not
know the role; 2 usage.
"""

_FLOOD_CHUNK = b"x" * 65536


def main() -> int:
    """Run uwf-mock on this process's arguments and environment."""
    argv = sys.argv[1:]
    if argv[:1] in (["-h"], ["--help"]):
        sys.stdout.write(_HELP)
        return 0
    try:
        attempt = find_attempt(argv, os.environ, load=lambda: load_context(os.environ, argv))
    except UwfError as error:
        hint = f"hint: {error.hint}\n" if error.hint else ""
        sys.stderr.write(f"error: {error.message}\n{hint}")
        return error.exit_status
    return play_attempt(attempt)


def find_attempt(
    argv: Sequence[str], environ: Mapping[str, str], *, load: Callable[[], AgentContext]
) -> MockAttempt:
    """Find the script's entry for this attempt; call *load* only if it is needed.

    Raises:
        BadUsage: the command line is not ``SCRIPT THREAD-ID``, or UWF_ATTEMPT is no number.
        Refused: the script cannot be read, or does not know the role.
    """
    arguments = parse_arguments(argv)
    if len(arguments.own) != 1:
        raise BadUsage(
            f"uwf-mock takes one script, not {len(arguments.own)}",
            hint="uwf-mock SCRIPT THREAD-ID; see uwf-mock --help",
        )
    script = _read_script(Path(arguments.own[0]))
    role = arguments.role or environ.get("UWF_ROLE") or load().current_role.name
    turns = script.get_turns(role)
    visit = 1 if len(turns) == 1 else load().visit
    is_single = all(len(turn) == 1 for turn in turns)
    number = 1 if is_single else _read_number(environ) or load().attempt
    return script.get_attempt(role, visit=visit, attempt=number)


def play_attempt(attempt: MockAttempt) -> int:
    """Do what *attempt* says; return the exit status, unless a signal ends the process."""
    sys.stderr.write(attempt.stderr)
    sys.stderr.flush()
    time.sleep(attempt.delay_s)
    stdout = sys.stdout.buffer
    for start in range(0, attempt.flood_bytes, len(_FLOOD_CHUNK)):
        stdout.write(_FLOOD_CHUNK[: attempt.flood_bytes - start])
    stdout.write(attempt.output)
    stdout.flush()
    if attempt.signal is not None:
        # Python handles SIGINT itself; the script wants the signal to kill the process.
        if attempt.signal not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(attempt.signal, signal.SIG_DFL)
        os.kill(os.getpid(), attempt.signal)
    while attempt.hang:
        signal.pause()
    return attempt.exit_status


def _read_script(file: Path) -> MockScript:
    try:
        return parse_script(file.read_bytes())
    except OSError as error:
        raise bad_script(f"cannot read {file}: {error.strerror}") from error


def _read_number(environ: Mapping[str, str]) -> int | None:
    text = environ.get("UWF_ATTEMPT")
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise BadUsage(f"UWF_ATTEMPT is {text!r}, not a number from 1", hint="unset UWF_ATTEMPT")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
