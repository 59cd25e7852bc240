"""Which kind of test each file holds: its markers, its hypothesis profile, whether it goes first.

Tables of shell patterns over paths below tests/; conftest.py applies them. No test is marked by
hand.
"""

from collections.abc import Collection
from fnmatch import fnmatchcase

MARKERS = {
    "quick": "of no kind below; `pytest -m quick` takes less than 30 s",
    "slow": "not run by plain pytest, only by .ci/run",
    "browser": "needs a browser; not run by plain pytest, only by .ci/run",
    "crash": "kills a command, cuts the power or fills the disk at every moment",
    "race": "many processes on one store",
    "disk": "stores on disk",
    "verb": "a verb and its command line, in this process, on a store on disk",
    "process": "starts programs, waits for time limits, or takes seconds",
    "hygiene": "house rules, linters, types",
    "realcli": "a real agent program, where one is installed",
}

_CRASH = (
    "*/test_killed_*",
    "*/test_failed_writes.py",
    "*/test_full_disk.py",
    "*/test_power_loss.py",
    "*/test_sharing_crash.py",
)

FILES = {
    "slow": (
        *_CRASH,
        "commands/fleet/*",
        "interop/test_ci_thread.py",
        "test_integrations.py",
        "web/ui/test_conformance.py",
        "*/test_races.py",
        "*/test_gc_races.py",
        "*/test_follow_races.py",
        "*/test_hub_races.py",
        "*/test_unite_races.py",
        "*/test_branch_races.py",
        "*_crowd.py",
        "*/test_stop_agent.py",
        "*/test_many_branches.py",
        "interop/test_hostile_*",
        "interop/test_receive.py",
        "interop/test_sharing_*",
        "interop/test_fleet_over_ssh.py",
        "library/test_arguments.py",
        "agentkit/adapters/test_acp_official.py",
        "agents/test_stdio_process.py",
        "commands/drive/test_drive_branches.py",
        "commands/inspect/test_logs.py",
        "commands/lifecycle/test_adopt_remote.py",
        "commands/remote/test_descendants.py",
        "commands/test_lessons_of_driving.py",
        "commands/verify/test_derived.py",
        "commands/verify/test_every_byte.py",
        "commands/verify/test_verify.py",
        "web/ui/test_drafts.py",
        "web/ui/test_security.py",
        "web/ui/test_serve.py",
        "test_bad_input.py",
        "test_bench.py",
        "distribution/*",
        "test_manual.py",
        "test_types.py",
        "cli/test_terminals.py",
        "cli/test_live_views.py",
        "cli/test_without_rich.py",
        "*/test_damaged_stores.py",
        "*/test_hostile_keys.py",
        "engine/javascript/test_fuzz_node.py",
        "engine/picture/test_many_places.py",
        "realcli/*",
        "workflows/test_installed_*",
        "agentkit/adapters/test_acp.py",
        "agents/test_nested.py",
        "cli/test_draft.py",
        "cli/thread/test_next_line.py",
        "commands/agent_run/test_orphaned_run.py",
        "commands/control/test_branches.py",
        "commands/control/test_steer.py",
        "commands/test_lessons_of_control.py",
        "commands/turn/test_isolated.py",
        "commands/verify/test_commit.py",
        "commands/verify/test_nodes.py",
        "commands/verify/test_payloads.py",
        "commands/verify/test_signatures.py",
        "commands/verify/test_status.py",
        "commands/verify/test_workflow_files.py",
        "commands/worktree/*",
        "cli/plan/test_run.py",
        "cli/plan/test_stop_notices.py",
        "cli/plan/test_at_terminal.py",
        "cli/plan/test_end_to_end.py",
        "workflows/test_plan_execute.py",
        "agentkit/adapters/test_human.py",
        "agents/test_limited_fork.py",
        "cli/thread/test_rm.py",
        "commands/cas/test_verify.py",
        "commands/control/test_amend.py",
        "commands/remote/test_fetch.py",
        "commands/remote/test_reconcile.py",
        "commands/step/test_flow_policies.py",
        "commands/test_verbs_by_chance.py",
        "engine/javascript/test_budget.py",
        "library/test_any_history.py",
        "library/test_handle.py",
        "agentkit/adapters/test_check.py",
        "agentkit/adapters/test_laws_of_adapters.py",
        "agentkit/adapters/test_mock.py",
        "agentkit/adapters/test_shell.py",
        "agentkit/programs/test_acp_client.py",
        "agentkit/programs/test_playing.py",
        "agentkit/test_lessons_of_agents.py",
        "cli/test_hook.py",
        "cli/thread/test_progress*",
        "commands/agent_run/test_play_agent.py",
        "commands/drive/test_branches_at_once.py",
        "commands/step/test_end_by_kill.py",
        "commands/verify/test_wording.py",
        "engine/javascript/test_node.py",
        "interop/test_other_ends.py",
        "plan/test_stop_*",
        "store/signatures/test_sign.py",
        "store/threads/test_lock.py",
        "store/gc/test_unite.py",
    ),
    "browser": ("browser/*",),
    "crash": _CRASH,
    "race": ("*/test_races.py", "*_races.py", "*/test_background_crowd.py"),
    "process": (
        "agentkit/adapters/*",
        "agentkit/llm/test_tools.py",
        "agentkit/test_running.py",
        "cli/app/test_auto_gc.py",
        "cli/app/test_boundary.py",
        "cli/app/test_follow_up.py",
        "cli/session/test_interrupt_signals.py",
        "engine/picture/test_places.py",
        "engine/test_fingerprints.py",
        "engine/test_jsonata_functions.py",
        "engine/test_flow_tries.py",
        "agentkit/llm/test_hostile_endpoints.py",
        "agentkit/programs/*",
        "agentkit/test_lessons_of_agents.py",
        "agents/*",
        "commands/agent_run/*",
        "commands/control/test_steer.py",
        "commands/drive/*",
        "commands/inspect/test_logs.py",
        "commands/remote/*",
        "commands/test_lessons_of_*",
        "commands/test_waiting_limits.py",
        "commands/verify/*",
        "engine/javascript/test_budget.py",
        "engine/javascript/test_fuzz_node.py",
        "engine/javascript/test_node.py",
        "interop/*",
        "library/*",
        "plan/test_hooks.py",
        "plan/test_stop_hook.py",
        "commands/plan/test_views.py",
        "plan/test_without_posix.py",
        "store/test_contract.py",
        "test_bad_input.py",
        "test_bench.py",
        "distribution/*",
        "test_processes.py",
        "test_seal.py",
        "test_manual.py",
        "test_transcripts.py",
        "web/ui/test_chat.py",
        "web/ui/test_security.py",
        "web/ui/test_serve.py",
        "workflows/*",
        "store/gc/*",
    ),
    "disk": ("store/*",),
    "verb": (
        "cli/agent/*",
        "cli/cas/*",
        "cli/plan/*",
        "cli/remote/*",
        "cli/test_*",
        "cli/thread/*",
        "cli/workflow/*",
        "commands/*",
        "web/test_report.py",
        "web/ui/test_application.py",
        "web/ui/test_changes.py",
        "web/ui/test_drafts.py",
        "web/ui/test_live_logs.py",
        "web/ui/test_redirect.py",
        "web/ui/test_routes.py",
        "web/ui/test_site.py",
    ),
    "hygiene": ("test_hygiene.py", "test_types.py"),
    "realcli": ("realcli/*",),
}

FIXTURES = {
    "backend": "process",
    "browser": "browser",
    "git": "process",
    "hub": "process",
    "key": "process",
    "ran": "process",
    "sites": "process",
    "start": "process",
}
"""The marker that asking for a fixture gives."""

# An example of these forks, runs git or waits for the disk.
COSTLY_EXAMPLES = (
    "agentkit/adapters/*",
    "agentkit/llm/test_tools.py",
    "agentkit/llm/test_work_folder.py",
    "agentkit/test_lessons_of_agents.py",
    "agents/test_limited_fork.py",
    "commands/*",
    "interop/*",
    "library/*",
    "store/*",
    "test_debug_log.py",
    "workflows/*",
)

# What takes longest begins first; else one worker would end with it alone.
LONGEST_FIRST = (
    "*/test_races.py",
    "*/test_background_crowd.py",
    "test_hygiene.py",
    "test_types.py",
    "*/test_killed_*",
    "*/test_failed_writes.py",
    "*/test_power_loss.py",
    "test_manual.py",
    "realcli/*",
    "*/test_stop_agent.py",
    "interop/*",
)


def kinds_of(path: str, fixtures: Collection[str]) -> set[str]:
    """List the markers of a test in the file *path* that asks for *fixtures*."""
    given = {marker for marker, patterns in FILES.items() if matches(path, patterns)}
    given |= {marker for fixture, marker in FIXTURES.items() if fixture in fixtures}
    return given or {"quick"}


def may_be_quick(path: str) -> bool:
    """Tell whether a file can hold tests that are quick."""
    return kinds_of(path, ()) == {"quick"}


def order_of(path: str) -> int:
    """Tell how early the tests of a file have to begin; less is earlier."""
    return next(
        (rank for rank, each in enumerate(LONGEST_FIRST) if fnmatchcase(path, each)),
        len(LONGEST_FIRST),
    )


def matches(path: str, patterns: Collection[str]) -> bool:
    """Tell whether one of the shell *patterns* fits *path*; `*` goes over folders."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)
