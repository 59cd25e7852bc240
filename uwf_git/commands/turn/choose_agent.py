"""Choose what plays a step: the agent, and the checks of its role."""

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.command_line import (
    ProgramMissing,
    agent_name,
    build_search_path,
    resolve_program,
    split_command,
)
from uwf_git.agents.process import ToolRequest, run_tool
from uwf_git.commands.family import find_owner
from uwf_git.commands.turn.branches import find_source
from uwf_git.commands.turn.next_move import CONFIG_NAME, KEPT_PROGRAMS, PERSON
from uwf_git.debug_log import debug
from uwf_git.errors import Refused, name_some
from uwf_git.model.builtin import AGENT_CONFIG, find_reference
from uwf_git.model.event_folds import merge_patch
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.text import quote_path
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import (
    END,
    Workflow,
    describe_check,
    parse_flow_node,
    parse_role,
    parse_workflow,
)
from uwf_git.store.git.config import GitConfig
from uwf_git.store.store import Store
from uwf_git.store.threads.history import Snapshot, get_role, get_typed, get_workflow
from uwf_git.store.trust import (
    agent_text,
    find_meant_files,
    is_set_by_store,
    is_trusted,
    list_formerly_trusted,
)
from uwf_git.store.workflows import is_shipped_agent
from uwf_git.surroundings import find_above

# The agents with an adapter, and which of their programs are installed.
#
# A test compares the table with the adapters. Programs are only asked for their version.

_VERSION = re.compile(rb"\d+(?:\.\d+)+[\w.+-]*")


class KnownAgent(NamedTuple):
    command: str
    """The adapter's command, as a role is bound to it; a person has none."""

    about: str
    programs: tuple[str, ...] = ()
    """The program's names, the likeliest first; empty: the adapter needs no program."""

    install: str = ""

    example: str | None = None
    """An example call, if the command needs arguments."""


KNOWN: tuple[KnownAgent, ...] = (
    KnownAgent(
        "uwf-claude", "Claude Code", ("claude",), "npm install -g @anthropic-ai/claude-code"
    ),
    KnownAgent("uwf-codex", "OpenAI Codex", ("codex",), "npm install -g @openai/codex"),
    KnownAgent("uwf-gemini", "Gemini CLI", ("gemini",), "npm install -g @google/gemini-cli"),
    KnownAgent("uwf-opencode", "opencode", ("opencode",), "npm install -g opencode-ai"),
    KnownAgent(
        "uwf-copilot",
        "GitHub Copilot CLI",
        ("copilot", "copilot-linux-x64"),
        "npm install -g @github/copilot",
    ),
    KnownAgent("uwf-qwen", "Qwen Code", ("qwen",), "npm install -g @qwen-code/qwen-code"),
    KnownAgent(
        "uwf-cursor",
        "Cursor CLI",
        ("cursor-agent", "agent"),
        "curl https://cursor.com/install -fsS | bash",
    ),
    KnownAgent("uwf-goose", "goose", ("goose",), "see https://goose-docs.ai"),
    KnownAgent("uwf-hermes", "Hermes Agent", ("hermes",), "pipx install hermes-agent"),
    KnownAgent("uwf-aider", "aider", ("aider",), "pipx install aider-chat"),
    KnownAgent("uwf-llm", "one call of a model, by its endpoint"),
    KnownAgent("uwf-react", "a model with tools, by its endpoint"),
    KnownAgent(
        "uwf-acp", "any agent of the Agent Client Protocol", example="uwf-acp 'gemini --acp'"
    ),
    KnownAgent("uwf-cli", "any command: prompt in, text out", example="uwf-cli 'my-tool --ask'"),
    KnownAgent(PERSON, "a person; the thread waits for `uwf thread answer`"),
    KnownAgent("uwf-human", "a person at the terminal"),
    KnownAgent("uwf-shell", "a shell command", example="uwf-shell 'make test'"),
    KnownAgent("uwf-mock", "a script, for trying workflows out", example="uwf-mock script.yaml"),
)


class FoundAgent(NamedTuple):
    agent: KnownAgent
    path: str | None
    """The path of its program; None: not installed, or not needed."""

    version: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether it can play a role here."""
        return self.path is not None or not self.agent.programs


def find_agents(environ: Mapping[str, str], *, with_versions: bool) -> list[FoundAgent]:
    """Return every known agent with the path of its program, in the table's order."""
    found = [FoundAgent(agent, _find_program(agent, environ)) for agent in KNOWN]
    if not with_versions:
        return found
    # Node.js starts slowly, so ask in parallel. Imported only for versions.
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (see above)

    with ThreadPoolExecutor(max_workers=4) as pool:
        versions = pool.map(lambda each: _read_version(each.path, environ), found)
        return [
            each._replace(version=version) for each, version in zip(found, versions, strict=True)
        ]


def name_agent(text: str) -> str:
    """Return the command that *text* means: ``claude`` is ``uwf-claude``, but ``human`` stays."""
    front = f"uwf-{split_command(text)[0]}"
    if text.strip() == PERSON:
        return PERSON
    return f"uwf-{text.lstrip()}" if any(agent.command == front for agent in KNOWN) else text


def tell_adapter(command: str) -> str | None:
    """Return a hint if *command* is a known program instead of its adapter; else None."""
    meant = name_agent(command)
    if meant == command:
        return None
    program = command.split(maxsplit=1)[0]
    return f"{program} has an adapter, which plays roles: `--agent {shlex.quote(meant)}`"


def _find_program(agent: KnownAgent, environ: Mapping[str, str]) -> str | None:
    path = build_search_path(environ.get("PATH", os.defpath))
    for name in agent.programs:
        with suppress(ProgramMissing):
            return resolve_program(name, path=path, workdir=os.sep)
    return None


def _read_version(path: str | None, environ: Mapping[str, str]) -> str | None:
    if path is None:
        return None
    request = ToolRequest((path, "--version"), environ, timeout_s=10.0, max_output_bytes=8192)
    try:
        ran = run_tool(request, on_output=lambda _: None)
    except (OSError, ValueError):
        return None
    version = _VERSION.search(ran.head + ran.tail)
    return version[0].decode() if version and ran.exit_code == 0 else None


# Agents that are typed: ``[ROLE=]CMD``, or ``[ROLE=]{…}`` with the settings of an agent.
#
# Source: seed 001 (``env``, ``timeout``).

_ROLE_WORD = re.compile(r"[^\s/=\"'\\]+")
_BEGINS_SETTINGS = "{"

_Payload = dict[str, Any]


def no_such_role(role: str, workflow: Workflow) -> Refused:
    """Say that `--agent ROLE=CMD` names a role that the workflow does not have."""
    return Refused(
        f"workflow {workflow.name} has no role {role}",
        code="no-such-role",
        hint=f"its roles are {', '.join(workflow.roles)}",
        role=role,
        roles=list(workflow.roles),
    )


class TypedAgent(NamedTuple):
    """One value of ``--agent``."""

    role: str | None
    """The role that it names; None: it is for every role."""

    settings: _Payload
    """A JSON merge patch of an AgentConfig payload."""

    def is_for(self, role: str) -> bool:
        return self.role is None or self.role == role


def read_typed(workflow: Workflow, texts: Iterable[str]) -> list[TypedAgent]:
    """Read values of ``--agent``; those for every role come first, so that others override them.

    Of equal reach commands come first: they drop no settings that were typed with them.
    """
    typed = [_read(text, workflow) for text in texts]
    return sorted(typed, key=lambda each: (each.role or "", "command" not in each.settings))


def leave_kept(
    workflow: Workflow, role: str, bound: _Payload | None, typed: list[TypedAgent]
) -> list[TypedAgent]:
    """Return *typed* without commands for every role if *role* has people or checks, on purpose.

    *bound* is the agent that the role has; the workflow's default agent is nobody's purpose.
    """
    is_default = bound == workflow.default_agent and role not in workflow.agent_overrides
    if bound is None or is_default or agent_name(bound["command"]) not in KEPT_PROGRAMS:
        return typed
    return [each for each in typed if each.role is not None or "command" not in each.settings]


def check_next(
    thread: ThreadId, workflow: Workflow, texts: Iterable[str], *, following: Collection[str]
) -> None:
    """Check that the values of ``--agent`` name roles of *following*, whose turn it is."""
    for each in read_typed(workflow, texts):
        named, role = each.role, name_some(list(dict.fromkeys(following)))
        if named is not None and not any(map(each.is_for, following)):
            turn = "the workflow is at its end" if role == END else f"it is the turn of {role}"
            raise Refused(
                f"role {named} is not next in thread {thread}: {turn}",
                code="role-not-next",
                hint=f"leave out --agent {named}=…; `uwf thread run {thread} --agent {named}=…` "
                f"has it for every turn of {named} in that run, and `uwf thread amend` from now on",
                thread=thread,
                role=named,
                next=None if role == END else role,
            )


def lay_over(
    role: str, base: _Payload | None, typed: Iterable[TypedAgent], *, may_run: bool, keeps: bool
) -> tuple[_Payload, bool]:
    """Lay what was *typed* for *role*, in this order, over its agent *base*.

    Also return whether the command and the environment were typed, or belong to an agent that may
    run here.

    A command replaces all of *base*, unless *keeps*; settings change it. *may_run*: *base* may run
    in this store.
    """
    agent, own = base or {}, (base or {}) if may_run else {}
    for each in typed:
        if "command" in each.settings and not keeps:
            agent, own = {}, {}
        agent, own = _apply(agent, each.settings), _apply(own, each.settings)
    if "command" not in agent:
        raise Refused(
            f"role {role} has no agent, and the settings for it name no command",
            code="command-unnamed",
            hint=f"""name one: --agent '{role}={{"command": "CMD", …}}'""",
            role=role,
        )
    # An environment can make a harmless command harmful.
    return agent, all(agent.get(part) == own.get(part) for part in ("command", "env"))


def _apply(agent: _Payload, settings: _Payload) -> _Payload:
    changed: _Payload = merge_patch(agent, settings)
    if not changed.get("env", True):
        # An agent has one name, whether its last variable was removed or it never had any.
        del changed["env"]
    return changed


def _read(text: str, workflow: Workflow) -> TypedAgent:
    role, agent = _split_role(text, workflow)
    if not agent.lstrip().startswith(_BEGINS_SETTINGS):
        split_command(agent)
        return TypedAgent(role, {"command": agent})
    from uwf_git.model.definition.roles import read_agent_settings  # noqa: PLC0415 (PyYAML: 30 ms, and few type settings)

    name = "--agent" if role is None else f"--agent {role}"
    return TypedAgent(role, read_agent_settings(agent, name=name))


def _split_role(text: str, workflow: Workflow) -> tuple[str | None, str]:
    """Read ``ROLE=CMD`` or ``CMD``; a command may contain ``=`` as well."""
    word, equals, command = text.partition("=")
    if not equals or text.lstrip().startswith(_BEGINS_SETTINGS):
        return None, text
    if word in workflow.roles:
        return word, command
    if _ROLE_WORD.fullmatch(word):
        # No command begins like this (only a shell reads NAME=VALUE first): a role was meant.
        raise no_such_role(word, workflow)
    return None, text


# Bind roles to agents: `--agent`, the workflow's overrides, its default, the configured one.


class Bound(NamedTuple):
    agents: dict[str, dict[str, Any]]

    typed: list[dict[str, Any]]
    """The agents that the user typed or configured, so that they may run here."""

    left: tuple[str, ...] = ()


def bind_roles(
    store: Store,
    workflow: Workflow,
    *,
    typed: Iterable[str] = (),
    default: str | None = None,
    directory: str | None = None,
) -> Bound:
    """Return the agents of *workflow*'s roles: *typed*, else *default*, else configured."""
    command = default or store.config.get(CONFIG_NAME)
    configured = {"command": command} if command else None
    workflow = workflow._replace(default_agent=workflow.default_agent or configured)
    binding = dict.fromkeys(workflow.roles, workflow.default_agent)
    binding |= {role: agent for role, agent in workflow.agent_overrides.items() if role in binding}
    bases = {role: agent for role, agent in binding.items() if agent is not None}
    is_own = bool(default) or not is_set_by_store(store, CONFIG_NAME)

    def may_run(agent: dict[str, Any]) -> bool:
        return (is_own and agent == configured) or is_trusted(store, agent, directory)

    said = bind_typed(workflow, typed, find_base=bases.get, may_run=may_run)
    agents = bases | said.agents
    if configured and configured in agents.values():
        split_command(configured["command"])
        # What the store's own config names runs only if it is trusted already.
        if is_own:
            said.typed.append(configured)
    bound = {role: agents[role] for role in workflow.roles if role in agents}
    return Bound(bound, said.typed, said.left)


def bind_typed(
    workflow: Workflow,
    typed: Iterable[str],
    *,
    find_base: Callable[[str], dict[str, Any] | None],
    may_run: Callable[[dict[str, Any]], bool],
    keeps: bool = False,
) -> Bound:
    """Return the agents of the roles for which an agent was typed, over those of *find_base*.

    *may_run* says which bases may run here. *keeps* is as in ``lay_over``. A command for every role
    leaves roles that are bound to a person, or to a check.
    """
    asked = read_typed(workflow, typed)
    agents: dict[str, dict[str, Any]] = {}
    said: list[dict[str, Any]] = []
    left: list[str] = []
    for role in workflow.roles:
        meant = [each for each in asked if each.is_for(role)]
        base = find_base(role)
        mine = leave_kept(workflow, role, base, meant)
        if mine != meant and not any(each.role == role for each in mine):
            left.append(role)
        if not mine:
            continue
        is_fit = base is None or may_run(base)
        agents[role], is_own = lay_over(role, base, mine, may_run=is_fit, keeps=keeps)
        if is_own and agents[role] not in said:
            said.append(agents[role])
    return Bound(agents, said, tuple(left))


# The roles that a thread and its branches may come to: its workflow's, and of those in it.


def find_played(workflow: Workflow, closure: Iterable[Node]) -> Workflow:
    """Return *workflow* with the agents' roles of workflows in its *closure* as well as its own."""
    return _unite_played(workflow, {node.hash: node for node in closure}.__getitem__)


def read_played(snapshot: Snapshot, workflow: Workflow, new: Iterable[Node] = ()) -> Workflow:
    """Return *workflow* with the roles that need agents, by nodes of *new* or of *snapshot*."""
    made = {node.hash: node for node in new}
    return _unite_played(workflow, lambda name: made.get(name) or snapshot.get_node(name))


def _unite_played(workflow: Workflow, read: Callable[[NodeHash], Node]) -> Workflow:
    roles: dict[str, NodeHash] = {}
    overrides: dict[str, dict[str, Any]] = {}
    for each in walk_used(workflow, read):
        # The default agent of the outer workflow is everybody's.
        default = None if each is workflow else each.default_agent
        for role, name in each.roles.items():
            if role in roles or parse_role(read(name)).workflow is not None:
                continue
            roles[role] = name
            if (own := each.agent_overrides.get(role, default)) is not None:
                overrides[role] = own
    return workflow._replace(roles=roles, agent_overrides=overrides)


def walk_used(workflow: Workflow, read: Callable[[NodeHash], Node]) -> Iterator[Workflow]:
    """Yield *workflow* and each workflow in it, by the nodes that *read* returns."""
    seen = {workflow.hash}
    waiting = [workflow]
    for each in waiting:
        yield each
        used = [parse_role(read(role)).workflow for role in each.roles.values()]
        if each.flow is not None:
            places = parse_flow_node(read(each.flow)).nodes.values()
            used += [find_reference(node.fields.get("workflow")) for node in places]
        for name in used:
            if name is not None and name not in seen:
                seen.add(name)
                waiting.append(parse_workflow(read(name)))


def check_roles(snapshot: Snapshot, until: str | None, agents: Sequence[str]) -> frozenset[str]:
    """Check that *until* and ``--agent`` name roles of the thread or branches; return all roles."""
    if until is None and not agents:
        return frozenset()
    workflow = get_workflow(snapshot, snapshot.record.workflow)
    roles: dict[str, NodeHash] = {}
    for each in walk_used(workflow, snapshot.get_node):
        roles = {**each.roles, **roles}
    everything = workflow._replace(roles=roles)
    if until is not None and until not in everything.roles:
        raise no_such_role(until, everything)
    read_typed(everything, agents)
    return frozenset(everything.roles)


# Look for the programs of agents before a thread is made; nothing runs.


class MissingProgram(NamedTuple):
    """A program that cannot be started here, and the roles that it would play."""

    roles: tuple[str, ...]
    error: ProgramMissing


def find_missing_programs(
    agents: Mapping[str, dict[str, Any]],
    environ: Mapping[str, str],
    workdir: str,
    config: GitConfig,
) -> list[MissingProgram]:
    """Return the programs of *agents*, and of adapters unless *config* says, that are not found."""
    missing: dict[str, MissingProgram] = {}
    for role, agent in agents.items():
        if (error := _find_problem(role, agent, environ, workdir, config)) is not None:
            before = missing[error.message].roles if error.message in missing else ()
            missing[error.message] = MissingProgram((*before, role), error)
    return list(missing.values())


def check_program(agent: dict[str, Any], directory: str | None, *, otherwise: str = "") -> None:
    """Refuse trust in a relative path to no program, whatever may come there later."""
    if directory is None:
        return
    program = find_above(split_command(agent["command"])[:1], workdir=directory)[0]
    try:
        if os.sep in program and not os.path.isabs(program):
            resolve_program(program, path="", workdir=directory)
    except ProgramMissing as error:
        hint = f"{error.hint}{otherwise}"
        raise Refused(error.message, code="agent-not-there", hint=hint, **error.facts) from None


def _find_problem(
    role: str, agent: dict[str, Any], environ: Mapping[str, str], workdir: str, config: GitConfig
) -> ProgramMissing | None:
    if agent["command"].strip() == PERSON:
        return None
    environ = {**environ, **agent.get("env", {})}
    path = build_search_path(environ.get("PATH", os.defpath))
    words = find_above(split_command(agent["command"]), workdir=workdir)
    try:
        resolve_program(words[0], path=path, workdir=workdir)
    except ProgramMissing as error:
        return error
    command = os.path.basename(words[0])
    known = next((each for each in KNOWN if each.command == command and each.programs), None)
    if known is None or _find_program(known, environ):
        return None
    name = command.removeprefix("uwf-")
    settings = (f"uwf.{name}.program", f"uwf.{name}.{role}.program")
    is_named = any(word.startswith("--program") for word in words) or any(map(config.get, settings))
    if is_named or environ.get(f"UWF_{name}_PROGRAM".upper()):
        return None
    problem = f"drives {known.programs[0]}, which is not on the PATH"
    return ProgramMissing(command, problem, hint=f"install it: {known.install}")


# Choose the agent of a step: `--agent`, then the thread's binding, then the configured default.
#
# A command that came with a thread, or that the store's own config names, does not run until the
# user trusts it here.


class NoAgent(Refused):
    code = "no-agent"

    def __init__(self, role: str, thread: ThreadId | None = None) -> None:
        give = "give one with --agent CMD"
        if thread is not None:
            give = f"bind one: `uwf thread amend {thread} --agent {shlex.quote(f'{role}=CMD')}`"
        super().__init__(
            f"no agent is bound to role {role}",
            hint=f"{give}, or a default with `uwf config set agent CMD`",
            role=role,
        )


class Choice(NamedTuple):
    agents: tuple[str, ...] = ()
    """Values of ``--agent``, for this step or drive only: ``[ROLE=]CMD`` or settings."""

    default: str | None = None
    """$UWF_AGENT: the default agent, before the configured one."""

    trust: bool = False
    """``--trust``: allow the thread's own command from now on."""

    workdir: str | None = None
    """Where the agent will run: the files that its command means are there; None: not known.

    For a poke, which asks as its step would, it is as it was typed.
    """

    is_for_drive: bool = False
    """A drive plays every role: a command typed for all leaves out people and checks."""

    allowed: frozenset[str] = frozenset()
    """Commands that a driver trusts and has sent: payloads as `agent_text` writes them."""

    others: frozenset[str] = frozenset()
    """Roles of other workflows that *agents* may name: the thread is one of several that run."""


def _ask_trust(store: Store, snapshot: Snapshot, choice: Choice) -> str:
    """Advise to trust what was shown, in its directory: one that was typed is not remembered."""
    thread, place = snapshot.record.thread, "--workdir PATH "
    if choice.workdir is not None and os.path.isdir(choice.workdir):
        is_known = choice.workdir == find_source(store, snapshot)
        place = "" if is_known else f"--workdir {quote_path(choice.workdir)} "
    return f"read it; if it may run here: `uwf thread step {thread} {place}--trust`"


def _agent_not_trusted(
    store: Store, snapshot: Snapshot, role: str, agent: dict[str, Any], choice: Choice
) -> Refused:
    files = find_meant_files(agent, choice.workdir) or ()
    # The whole command: a cut text could hide its harmful part.
    extra = f" with {json.dumps(agent['env'])}" if agent.get("env") else ""
    meant = f" (here {', '.join(files)})" if files else ""
    hint = f"{_ask_trust(store, snapshot, choice)}; "
    if agent in list_formerly_trusted(store):
        # The store's own config trusts it, as an older uwf wrote it.
        hint += "what this store's config trusts no longer counts, `uwf agent trust --stored` "
        hint += "takes it over; "
    return Refused(
        f"role {role} would run a command that is not trusted here: {agent['command']}"
        f"{extra}{meant}",
        code="agent-not-trusted",
        hint=f"{hint}or use your own with --agent CMD",
        thread=snapshot.record.thread,
        role=role,
        agent=agent,
        files=list(files),
    )


def choose_agent(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> Node:
    typed = _read_typed(snapshot, present, role, choice)
    node, is_fit = None, True
    if not any("command" in each.settings for each in typed):
        node, is_fit = _find_bound(store, snapshot, present, role=role, choice=choice)
    if typed:
        base = None if node is None else node.payload
        agent, is_fit = lay_over(role, base, typed, may_run=is_fit, keeps=False)
        node = build_agent(agent, timestamp=snapshot.commit.time_s * 1000)
    if node is None:
        raise NoAgent(role, snapshot.record.thread)
    is_fit = is_fit or is_person(node)
    # In a worktree it may be what another agent has made.
    if not is_fit and find_owner(store, snapshot) is None:
        otherwise = "; another directory: --workdir PATH, or use your own agent with --agent CMD"
        check_program(node.payload, choice.workdir, otherwise=otherwise)
    is_fit = is_fit or choice.trust
    name = agent_name(node.payload["command"])
    if typed:
        debug("PFC8BH1W", "agent named here", role=role, agent=name, may_run=is_fit)
    else:
        debug("6MNHY3VE", "agent bound", role=role, agent=name, node=node.hash, may_run=is_fit)
    if not is_fit:
        raise _agent_not_trusted(store, snapshot, role, node.payload, choice)
    return node


def _read_typed(
    snapshot: Snapshot, present: ThreadState, role: str, choice: Choice
) -> list[TypedAgent]:
    if not choice.agents:
        return []
    workflow = get_workflow(snapshot, present.workflow)
    if choice.others:
        # Which hash is no matter: the names alone are read.
        known = dict.fromkeys(choice.others, workflow.hash)
        workflow = workflow._replace(roles={**known, **workflow.roles})
    typed = [each for each in read_typed(workflow, choice.agents) if each.is_for(role)]
    if not choice.is_for_drive or role not in present.binding:
        return typed
    bound = get_typed(snapshot, present.binding[role], AGENT_CONFIG).payload
    return leave_kept(workflow, role, bound, typed)


def _find_bound(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> tuple[Node | None, bool]:
    """Return the agent of *role* without ``--agent``, and whether it may run here."""
    workflow = snapshot.record.workflow_name
    if role in present.binding:
        node = get_typed(snapshot, present.binding[role], AGENT_CONFIG)
        return node, _may_run_in(choice, store, node.payload, workflow=workflow)
    default = choice.default or store.config.get(CONFIG_NAME) or None
    if default is None:
        return None, True
    node = build_agent({"command": default}, timestamp=snapshot.commit.time_s * 1000)
    is_own = bool(choice.default) or not is_set_by_store(store, CONFIG_NAME)
    return node, is_own or _may_run_in(choice, store, node.payload, workflow=workflow)


def _may_run_in(choice: Choice, store: Store, agent: dict[str, Any], *, workflow: str) -> bool:
    is_sent = agent_text(agent) in choice.allowed
    return is_sent or may_run(store, agent, workflow=workflow, workdir=choice.workdir)


def may_run(store: Store, agent: dict[str, Any], *, workflow: str, workdir: str | None) -> bool:
    return is_trusted(store, agent, workdir) or is_shipped_agent(workflow, agent)


def is_person(agent: Node) -> bool:
    """Check whether the agent is a person: nothing runs, and the thread waits for an answer."""
    return bool(agent.payload["command"].strip() == PERSON)


def build_agent(payload: dict[str, Any], *, timestamp: int) -> Node:
    return build_node(AGENT_CONFIG, payload, timestamp=timestamp)


# The checks of a role: a command that came from elsewhere runs only if it is trusted here.


def choose_checks(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> list[dict[str, Any]]:
    """Return what is trusted where the checks of *role* may run, a payload each."""
    asked = get_role(snapshot, get_workflow(snapshot, present.workflow).roles[role])
    checks = [describe_check(command) for command in asked.checks]
    for check in checks:
        name = snapshot.record.workflow_name
        if choice.trust or _may_run_in(choice, store, check, workflow=name):
            continue
        thread, command = snapshot.record.thread, check["command"]
        files = find_meant_files(check, choice.workdir) or ()
        meant = f" (here {', '.join(files)})" if files else ""
        raise Refused(
            f"the answer of role {role} would be checked by a command that is not trusted here: "
            f"{command}{meant}",
            code="check-not-trusted",
            hint=_ask_trust(store, snapshot, choice),
            thread=thread,
            role=role,
            command=command,
            files=list(files),
        )
    return checks
