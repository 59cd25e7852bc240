"""Threads to report: one with all that happens to threads, a hostile one, a long one."""

from typing import Any

from commands.flows import plays, split_checks
from commands.step.test_record_turn import CHECKS
from commands.world import World, fails, says
from seal import START_MS
from store.small_packs import lose

from uwf_git.agents.command_line import AgentReply
from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, Player, StepFiles
from uwf_git.model.names import ThreadId

KEY = "ghp_" + "a1B2" * 9
"""Of a shape that keys have."""
SECRET = "correct-Horse-battery-7"
"""Of the environment, in no shape of a key."""

BIDI = "\u202egnp.exe\u2066"
ATTACK = "</title></svg></style></pre><script>alert(1)</script><img src=x onerror=alert(2)>"
MARKDOWN_ATTACK = f"""\
# A heading{ATTACK}

![picture](https://evil.example/p.png) <img src="https://evil.example/q.png">
[run](javascript:alert(3)) [data](data:text/html,x) [file](file:///etc/passwd)
[good](https://example.com/a?b=c&d=e "title{ATTACK}") <https://example.com/> <javascript:alert(4)>

| a | b |
|:-:|--:|
| {ATTACK.replace("|", "")} | &#x202E;entity &lt;b&gt; |

|{" wide |" * 40}
|{"---|" * 40}
|{" unbreakable_words_in_cells |" * 40}

``` js" onload="alert(5)
{ATTACK}
```

1. [a]: https://evil.example/defined
7. <style>body {{ display: none }}</style>

<iframe src="https://evil.example/"></iframe> {BIDI} \x1b[2J\x07 {KEY}
"""

WORK = """\
name: work
description: Plan, build and review until it is good.
roles:
  planner:
    description: Plans the work.
    systemPrompt: Plan.
    outputSchema: {type: object, properties: {phases: {type: array}}, required: [phases]}
  developer:
    description: Builds it.
    systemPrompt: Build.
    outputSchema: {type: object, properties: {summary: {type: string}}, required: [summary]}
  reviewer:
    description: Judges the change.
    systemPrompt: "# Good?\\n\\nIs it good?"
    outputSchema: {type: object, properties: {approved: {type: boolean}}, required: [approved]}
moderator:
  - {from: $START, to: planner}
  - {from: planner, to: developer}
  - {from: developer, to: reviewer}
  - {from: reviewer, to: developer, condition: meta.approved = false}
  - {from: reviewer, to: $END}
"""

TASK = """\
Escape user names in LDAP filters

A user name with an asterisk logs anybody in. Escape it as RFC 4515 says:

# Where

- every call of `search`
- the tests as well
"""

BUILT = """\
## What was done

`escape()` is called **in each filter**; see [RFC 4515](https://www.rfc-editor.org/rfc/rfc4515).

| file | lines |
|---|---|
| auth/ldap.py | +12 -3 |
| tests/test_ldap.py | +30 |

```python
def escape(name: str) -> str:
    return "".join(f"\\\\{ord(each):02x}" if each in "*()\\\\" else each for each in name)
```

1. The old filter is gone.
2. Nothing else calls it.
"""


def played(meta: Any, content: str, *, ms: int, tokens: int = 0, prompt: str = "") -> Player:
    """Return a player that reports what it took, and the prompt that it sent."""
    usage = {"inputTokens": tokens, "outputTokens": tokens // 8, "costUsd": tokens / 100_000}
    reply = AgentReply(meta, content, "object", usage=usage if tokens else None)
    return lambda _turn: Played(reply, START_MS, ms, left=StepFiles(prompt=prompt))


def fail(world: World, thread: ThreadId, message: str, log: str, *, stdout: str = "") -> None:
    """Let the next attempt fail."""
    error = {"kind": "exited", "message": message}

    def play(_turn: object) -> Played:
        return Played(
            None, START_MS, 800, error=error, exit_code=7,
            stdout=stdout.encode(), stderr=log.encode(),
        )  # fmt: skip

    try:
        world.step(thread, play)
    except TurnFailed:
        return
    raise AssertionError("it did not fail")


def tell_work(world: World) -> ThreadId:
    """Tell a thread that failed, was steered, went round, and ended."""
    thread = world.start("uwf-claude --model opus", workflow=world.put(WORK).workflow, prompt=TASK)
    phases = [{"name": "escape", "files": ["auth/ldap.py"]}, {"name": "test", "files": []}]
    plan = played({"phases": phases, "risk": "low"}, "Two phases.", ms=12_300, tokens=4_000)
    world.step(thread, plan)
    fail(world, thread, "exit status 7: no such module ldap3", "Traceback …\nImportError: ldap3\n")
    world.retry(thread, hint="pip install ldap3 first")
    first = {"summary": "Escaped the name", "filesChanged": ["auth/ldap.py", "tests/test_ldap.py"]}
    prompt = "# You are developer\n\n" + "Read it all.\n" * 5_000
    world.step(thread, played(first, BUILT, ms=185_000, tokens=52_000, prompt=prompt))
    world.pause(thread, reason="Let me look at it first.")
    world.patch(thread, {"seen": True}, reason="I looked.")
    world.resume(thread)
    refusal = {"approved": False, "why": "The group filter is not escaped."}
    world.step(thread, played(refusal, "", ms=31_000, tokens=9_000))
    world.poke(thread, hint="Look at groups.py too.")
    refusal = {"approved": False, "why": "Neither the group filter nor groups.py is escaped."}
    world.step(thread, played(refusal, "Two places are left.", ms=33_000, tokens=9_500))
    second = {"summary": "Escaped all filters", "filesChanged": ["auth/ldap.py", "auth/groups.py"]}
    built = BUILT.replace("+12 -3", "+15 -4").replace("2. Nothing", "2. `groups.py` too. Nothing")
    world.step(thread, played(second, built, ms=95_000, tokens=61_000, prompt=prompt))
    world.step(thread, says({"approved": True, "why": "Good."}, "total 3\n  a   1\n  b   2\n"))
    world.step(thread)
    return thread


def tell_hostile(world: World) -> ThreadId:
    """Tell a thread in which all foreign text attacks the reader."""
    name = f"r{ATTACK}"[:60].replace("'", "")
    source = WORK.replace("Plan, build and review until it is good.", f'"{BIDI} {KEY}"')
    source = source.replace("Builds it.", f"'{ATTACK} {BIDI}'")
    workflow = world.put(source).workflow
    task = f"{ATTACK} {BIDI} {KEY} {SECRET}\n\n{MARKDOWN_ATTACK}"
    thread = world.start(f"sh -c '{name}' {KEY}", workflow=workflow, prompt=task)
    meta = {
        "phases": [ATTACK, BIDI],
        f"{ATTACK}{BIDI}{KEY}": MARKDOWN_ATTACK,
        KEY: {ATTACK: [BIDI, {KEY: SECRET}]},
        "deep": _deep(200),
    }
    world.step(thread, played(meta, MARKDOWN_ATTACK, ms=10**12, tokens=10**9, prompt=ATTACK * 200))
    fail(world, thread, f"{ATTACK} {BIDI} {KEY}", f"{ATTACK}\r\x1b[31m{KEY}", stdout=ATTACK)
    world.retry(thread, hint=f"{ATTACK} {KEY}")
    usage = {"tokens": "<b>", "cost": ATTACK, "<script>": {"x": BIDI}, "deep": _deep(494)}
    reply = AgentReply(
        {"summary": ATTACK}, "`" * 50_000, "object",
        usage=usage, session=ATTACK, rung=ATTACK, state={ATTACK: BIDI},
    )  # fmt: skip
    world.step(thread, lambda _turn: Played(reply, START_MS, 1))
    reason = f"{MARKDOWN_ATTACK} {SECRET}"
    world.patch(thread, {ATTACK: ATTACK, KEY: KEY}, reason=reason)
    world.pause(thread, reason=reason)
    return thread


def _deep(levels: int) -> Any:
    value: Any = ATTACK
    for _ in range(levels):
        value = [value]
    return value


def tell_long(world: World, steps: int) -> ThreadId:
    """Tell a thread of *steps* steps with 4 KB of content and prompts of 60 KB."""
    source = WORK.replace("meta.approved = false", "meta.approved = false or depth > 0")
    thread = world.start(workflow=world.put(source).workflow, prompt=TASK)
    for number in range(steps):
        line = f"Step {number} says *this* much, and `that`, and **more**; nothing is left out.\n"
        meta = {"phases": [], "summary": f"number {number}", "approved": False}
        play = played(
            meta, line * (4_096 // len(line)), ms=1_000, tokens=100,
            prompt=f"{number}\n{'A prompt is long. ' * 3_500}"[:60_000],
        )  # fmt: skip
        world.step(thread, play)
    return thread


def tell_waiting(world: World) -> ThreadId:
    """Tell a thread in which a person has answered, and is asked again."""
    agents = ("planner=human", "developer=nobody", "reviewer=human")
    thread = world.start(*agents, workflow=world.put(WORK).workflow, prompt=TASK)
    world.step(thread)
    world.answer(thread, PersonAnswer({"phases": []}, "By hand."))
    world.step(thread, says({"summary": "built"}))
    world.step(thread)
    return thread


def tell_branches(world: World) -> ThreadId:
    """Tell a thread of branches, one after the other: a drive takes them at once."""
    split = split_checks(world, CHECKS)
    split.finish_branches()
    return world.finish(split.thread, plays).record.thread


def tell_many(world: World) -> dict[str, ThreadId]:
    """Tell threads of several kinds, by what they show."""
    told = {"work": tell_work(world), "waiting": tell_waiting(world)}
    told["branches"] = tell_branches(world)
    split = split_checks(world)
    told |= {"split": split.thread, "branch": split.children[0]}
    fail(world, split.children[0], "exit status 1", "no\n" * 9_000)
    world.step(split.children[1], plays)
    world.amend(split.thread, limits={"maxSteps": 9, "maxCost": 2.5})
    told |= {"damaged": world.stepped(times=2), "lost": world.stepped(), "limited": world.start()}
    limited = fails("slow down", kind="usage-limit", left=StepFiles(reset_at=START_MS * 2))
    world.fail(told["limited"], limited)
    lose(world.store, world.snapshot(told["damaged"]).get_entry("now.json"))
    lose(world.store, world.tip(told["lost"]))
    environ = {**world.caller.environ, "UWF_THREAD_ID": told["waiting"]}
    world.caller = world.caller._replace(environ=environ)
    told["killed"] = world.start("uwf-claude -m opus\nsecond line", "checker=" + "x" * 100)
    state = {"mood": ["good", None]}
    usage = {"inputTokens": 7, "costUsd": 1.5}
    play = says({"text": "a"}, "", session="s-1", rung="object", state=state, usage=usage)
    world.step(told["killed"], play)
    world.kill(told["killed"], reason="enough")
    return told
