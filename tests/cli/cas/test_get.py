import json
import time
from collections.abc import Callable

import seal
from cas_nodes import NOWHERE, keep_alone, new_caller
from cli.ran import Ran

from uwf_git.commands.cas import put_payload
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.node import build_node
from uwf_git.store.store import Store

Cas = Callable[..., Ran]


def test_node_is_printed_whole(cas: Cas, store: Store) -> None:
    note = put_payload(store, new_caller(), "Text", "hello").hash

    assert json.loads(cas("get", note[:7].lower()).out) == {
        "hash": note,
        "type": TEXT,
        "payload": "hello",
        "timestamp": seal.START_MS,
    }


def test_text_of_a_text_node_is_its_text_with_controls_spelled_out(cas: Cas, store: Store) -> None:
    note = put_payload(store, new_caller(), "Text", "one\n\x1b[2Jtwo\n").hash

    assert cas("get", note, "--format", "text").out.endswith(" UTC\n\none\n\\x1b[2Jtwo\n")


def test_builtin_node_was_written_at_no_time(cas: Cas) -> None:
    told = cas("get", META, "--format", "text").out

    assert told.startswith(f"node: {META}\ntype: {META} (JSON Schema)\nwritten: never")


def test_many_threads_cost_little(cas: Cas, store: Store) -> None:
    """Processor time, not the clock: other programs may be busy."""
    for number in range(300):
        node = build_node(TEXT, f"note {number}", timestamp=0)
        keep_alone(store, f"refs/threads/01J000{number:020d}", node)
    oldest = build_node(TEXT, "note 0", timestamp=0).hash
    cas("get", META)
    began = time.process_time()

    assert cas("get", oldest).status == 0
    assert cas("get", oldest[:6]).status == 0
    assert cas("has", NOWHERE).status == 1
    assert time.process_time() - began < 1
