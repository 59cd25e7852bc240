"""FORMAT.md says what the code does: its tables, its examples, its sections."""

import hashlib
import json
import re

import pytest
from store.format_page import PACKAGE, PAGE, section, table
from store.story import THREAD

from uwf_git.commands.admin import SETTINGS
from uwf_git.model.builtin import BUILTIN_NODES, RESULT_FLOW, TEXT
from uwf_git.model.event_folds import Words
from uwf_git.model.event_rules import RULES
from uwf_git.model.names import NodeHash
from uwf_git.model.node import encode, typed_hash
from uwf_git.model.thread import (
    EVENTS,
    FORMAT,
    STATUSES,
    Split,
    ThreadState,
    TransitionRecord,
    Try,
    Waiting,
)
from uwf_git.store import store as discover
from uwf_git.store import trust
from uwf_git.store.durable import find_user_file
from uwf_git.store.git.program import agent_identity
from uwf_git.store.lookup import NODES_REF
from uwf_git.store.nodes import JSON_SUFFIX, TEXT_SUFFIX, decode_node, encode_node
from uwf_git.store.objects.commit import parse_trailers
from uwf_git.store.remotes.remotes import CLAIMS
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import KEPT, build_thread_message, parse_thread_message
from uwf_git.store.workflows import WORKFLOWS

SOURCES = {
    str(path.relative_to(PACKAGE)): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")
}
SECTIONS_NAMED = sorted(
    (module, title)
    for module, source in SOURCES.items()
    for title in re.findall(r'FORMAT\.md, "([^"]+)"', source)
)
NAME, COMMIT = NodeHash("8FWKR3TN5V1QA"), "1" * 40

START = TransitionRecord(THREAD, "start", "ready", NAME, 0, NAME, "demo", cause=NAME)
BARE = START._replace(cause=None)
STEP = START._replace(event="step", depth=1, role="writer", agent="uwf-mock")


def test_modules_name_their_sections() -> None:
    assert len(SECTIONS_NAMED) >= 10


@pytest.mark.parametrize(("module", "title"), SECTIONS_NAMED)
def test_every_section_that_a_module_names_exists(module: str, title: str) -> None:
    assert section(title).strip(), module


def test_the_version_is_the_one_that_is_written_and_has_a_history() -> None:
    assert PAGE.startswith(f"# The format of the store, version {FORMAT}\n")
    versions = re.findall(r"^- \*\*(\d+)\*\*: ", section("Version history"), re.MULTILINE)
    assert versions == [str(number) for number in range(1, FORMAT + 1)]


def test_the_refs_are_those_of_the_code() -> None:
    rows = [row[0] for row in table("Refs")]
    kept = [ACTIVE + "<id>", ARCHIVE + "<id>", WORKFLOWS + "<name>", CLAIMS + "<id>", NODES_REF]
    assert rows == [*kept, "refs/uwf/remotes/<remote>/…", KEPT + "<id>/<commit>"]


def test_the_built_in_schemas_are_those_of_the_code() -> None:
    rows = table("The built-in schemas")
    assert rows == [[node.payload["title"], node.hash] for node in BUILTIN_NODES]
    assert f"`Flow with results`, `{RESULT_FLOW}`" in section("The built-in schemas")


@pytest.mark.parametrize("title", ["StartNode", "StepNode", "Attempt"])
def test_each_field_of_a_node_has_a_row_that_says_whether_it_may_be_absent(title: str) -> None:
    schema = next(node.payload for node in BUILTIN_NODES if node.payload.get("title") == title)
    found = re.search(
        rf"^\| {title} \| is \|\n(.*?)^\n", section("Nodes of a thread"), re.DOTALL | re.MULTILINE
    )
    assert found
    first_cells = "".join(line.split("|")[1] for line in found[1].splitlines()[1:])
    assert dict(re.findall(r"`(\w+)`(\??)", first_cells)) == {
        name: "" if name in schema["required"] else "?" for name in schema["properties"]
    }


EXAMPLES = re.findall(
    r"^`nodes/(.)/(.)/(.{11})(\.\w+)`:\n\n```\w+\n(.*?)^```\n", PAGE, re.DOTALL | re.MULTILINE
)


def test_both_forms_of_a_node_file_have_an_example() -> None:
    assert [suffix for *_path, suffix, _content in EXAMPLES] == [JSON_SUFFIX, TEXT_SUFFIX]


@pytest.mark.parametrize(("first", "second", "rest", "suffix", "content"), EXAMPLES)
def test_a_node_file_is_the_node_that_its_path_names(
    first: str, second: str, rest: str, suffix: str, content: str
) -> None:
    node = decode_node(NodeHash(first + second + rest), content.encode())
    assert encode_node(node) == (suffix, content.encode())


def test_the_header_of_a_text_is_what_the_page_says() -> None:
    pattern = re.search(r"`(\\A---.*?)`", section("Node files"))
    assert pattern
    json_file, text_file = (content for *_path, content in EXAMPLES)
    assert re.match(pattern[1].encode(), text_file.encode())
    assert not re.match(pattern[1].encode(), json_file.encode())


@pytest.mark.parametrize(("payload", "cbor", "name"), table("Names"))
def test_a_payload_has_the_bytes_and_the_name_in_the_table(
    payload: str, cbor: str, name: str
) -> None:
    value = json.loads(payload)
    assert (encode(value).hex(), typed_hash(TEXT, value)) == (cbor, name)


def test_the_message_reads_back_and_is_written_again() -> None:
    example = re.search(r"```text\n(.*?)```", section("Messages"), re.DOTALL)
    assert example
    message = example[1].encode()
    record = parse_thread_message(message)
    assert (record.event, record.role, record.attempt) == ("attempt", "checker", 1)
    words = Words("attempt 1 failed: exit status 7", "KeyError: 'ok'\n")
    assert build_thread_message(record, words) == message


@pytest.mark.parametrize(
    "record",
    [
        START,
        STEP,
        STEP._replace(event="attempt", attempt=3, retries_left=True),
        BARE._replace(event="end", status="completed"),
        BARE._replace(event="kill", status="killed"),
        BARE._replace(event="fork", forked_from=THREAD),
        BARE._replace(event="wait", status="waiting", role="writer"),
        STEP._replace(event="answer"),
        START._replace(event="pause", status="paused", cause=NAME),
        START._replace(event="poke", cause=NAME),
    ],
    ids=lambda record: str(record.event),
)
def test_a_thread_commit_has_the_trailers_in_the_table(record: TransitionRecord) -> None:
    expected = [
        name
        for name, _value, on in table("The trailers of a thread commit")
        if on == "every one" or record.event in re.findall(r"\w+", on)
    ]
    rule = RULES[record.event]
    record = record._replace(
        at="0/1" if rule.has_place else None,
        turn=COMMIT if rule.leaves_turn else None,
        files=f"{COMMIT}..{COMMIT}" if rule.may_change_files else None,
        retries_left=True if rule.may_change_files else None,
    )
    assert list(parse_trailers(build_thread_message(record, Words("x")))) == expected


def test_no_module_writes_a_trailer_that_is_not_on_the_page() -> None:
    written = {
        name
        for module, source in SOURCES.items()
        if module.startswith("store/")
        for name in re.findall(r'"(Uwf-[A-Z][A-Za-z-]*)"', source)
    }
    assert written == {row[0] for row in table("The trailers of a thread commit")}


def listed(words: str) -> set[str]:
    """Return the words in backquotes that follow *words* on the page, up to the full stop."""
    found = re.search(rf"{words}(.*?)\.\s", section("The trailers of a thread commit"), re.DOTALL)
    assert found, words
    return set(re.findall(r"`(\w+)`", found[1]))


def test_the_events_are_on_the_page() -> None:
    written = listed("Events:")
    assert written == set(EVENTS)
    # Those that check what others wrote know every event.
    commands = "".join(
        text
        for module, text in SOURCES.items()
        if module.startswith("commands/") and not module.startswith("commands/verify/")
    )
    assert written == {event for event in EVENTS if f'"{event}"' in commands}


def test_what_an_event_leads_to_is_what_its_rule_allows() -> None:
    told = {
        row[0]: {word for word in re.findall(r"\w+", row[2]) if word in STATUSES}
        for row in table("What events do")
    }
    assert set(told) == set(EVENTS) - {"start"}
    for event, rule in RULES.items():
        assert told.get(event, set()) <= set(rule.leads_to.split()), event


def test_the_statuses_are_on_the_page() -> None:
    assert listed("Statuses:") == set(STATUSES)


def test_the_fields_of_now_json_are_those_of_the_code() -> None:
    full = ThreadState(
        NAME,
        binding={"writer": NAME},
        started_at=1,
        state={"a": 1},
        visits={"writer": 1},
        attempts=1,
        last_attempt=NAME,
        failures=1,
        usage={"tokens": 1},
        execution_ms=1,
        limits={"maxSteps": 1},
        waiting=Waiting("writer", 1),
        paused_from="waiting",
        hint="again",
        trying="0/1",
        split=Split("0", ()),
        tried=Try("0/1"),
    )
    rows = table("now.json")
    assert [row[0] for row in rows] == list(full.as_document())
    always = [name for name, meaning in rows if "; absent if" not in meaning]
    assert always == list(ThreadState(NAME, {}, 1).as_document())


def test_the_settings_are_those_of_the_code() -> None:
    names = {row[0] for row in table("Local files") if row[0].startswith("uwf.")}
    of_the_user = {discover.DEFAULT_NAME, trust.OLD_NAME}
    adapters = "uwf.<adapter>.<key>`, `uwf.<adapter>.<role>.<key>"
    of_plans = {name for name in SETTINGS if name.startswith("uwf.plan.")}
    assert names == {*SETTINGS, *of_the_user, adapters, "uwf.plan.<key>"} - of_plans


def test_the_list_of_trusted_commands_is_where_the_page_says() -> None:
    told = section("Trust")
    path = find_user_file("/s.git", {"XDG_STATE_HOME": "/state"}, "trust")
    key = hashlib.sha256(b"/s.git").hexdigest()
    assert str(path).replace(key, "<SHA-256 of the path of the store>") in told.replace(
        "$XDG_STATE_HOME", "/state"
    )
    assert f"`{trust.NAME}`" in told


def test_the_author_of_a_step_is_written_so() -> None:
    identity = agent_identity("developer", "uwf-cursor").decode()
    assert f"`{identity}`" in section("Identities and dates")
