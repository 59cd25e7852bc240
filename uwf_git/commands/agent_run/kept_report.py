"""End an agent that stays open although it has left its meta in its file: that is its answer.

What it has left is kept beside its run first, so the answer is the same however the agent ends, and
whichever engine sees it.
"""

import json
from collections.abc import Mapping

from uwf_git.agents.reply import BadJson, parse_strict_json
from uwf_git.agents.request import AgentRun, Listener
from uwf_git.commands.agent_run.mask import Secrets, read_secrets
from uwf_git.commands.agent_run.output_file import Report, find_report, read_reply
from uwf_git.commands.agent_run.step_dir import read_step_dir
from uwf_git.commands.turn.turn import Played, Turn

_ENDED = b"it has left its report and stays open; it is ended, and that is its answer\n"


def with_end(turn: Turn, listener: Listener, environ: Mapping[str, str]) -> Listener:
    """Return *listener* so that an agent which has left its meta is ended once it may be."""

    def is_done() -> bool:
        if turn.run_dir.read_report():
            # A dead engine was about to end it.
            return True
        if not (turn.may_end() and _keep_report(turn, read_secrets(turn.run_dir, environ))):
            return False
        if listener.on_stderr is not None:
            listener.on_stderr(_ENDED)
        return True

    return listener._replace(is_done=is_done)


def _keep_report(turn: Turn, secrets: Secrets) -> bool:
    """Keep what the agent of *turn* has left; return False if nothing there fits."""
    report = find_report(turn, secrets)
    if report is None or report.problem is not None:
        return False
    try:
        turn.run_dir.write_report(json.dumps(report.meta))
    except OSError:
        # A full disk: the agent goes on.
        return False
    return True


def find_kept_report(turn: Turn) -> Report | None:
    """Return what was kept before the agent of *turn* was ended; None if nothing was."""
    document = turn.run_dir.read_report()
    try:
        return Report(turn.run_dir.read_output_file(), parse_strict_json(document))
    except BadJson:
        return None


def read_kept(run: AgentRun, turn: Turn, report: Report) -> Played:
    """Return the answer of an agent that was ended for its *report*, whatever its end."""
    if run.outcome == "interrupted":
        # Ctrl-C came while it was being ended.
        error = {"kind": "interrupted", "message": "it was interrupted"}
        return Played(None, run.started_ms, run.duration_ms, error=error, is_kept=True)
    reply = read_reply(report, run.stdout, turn.agent.payload.get("protocol", "positional"))
    # An agent of the kit tells what it has spent as one that failed.
    spent = reply.usage or read_step_dir(turn.run_dir.step_dir).usage
    reply = reply._replace(usage=dict(spent) if spent else None)
    return Played(reply, run.started_ms, run.duration_ms, stdout=run.stdout, stderr=run.stderr)
