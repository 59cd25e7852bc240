"""A hostile client pushes trees and nodes made by hand: each lie is refused, by its name."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands.sharing import Sites
from interop.forge import Forge, path_of, take_apart
from interop.scene import Scene, assert_refused, node_of
from store.test_chain_cycles import forged

from uwf_git.agents.limited_fork import run_limited
from uwf_git.commands.remote.reconcile import MOST_FAILED
from uwf_git.model.builtin import META, STEP, TEXT, reference
from uwf_git.model.names import NodeHash, encode_u64
from uwf_git.model.node import Node, build_node

MIB = 1024 * 1024


def test_present_that_lies_is_refused(scene: Scene, forge: Forge) -> None:
    for field, value in {"depth": 9, "state": {"round": 2}, "visits": {}}.items():
        lying = scene.honest.copy()
        lying.write("now.json", json.dumps({**forge.read("now.json"), field: value}).encode())
        assert_refused(scene, lying, f"now.json says {field}")
    forge.write("now.json", b"{}")
    assert_refused(scene, forge, "now.json")


@pytest.mark.parametrize("name", ["head.json", "start.json"])
def test_file_that_is_not_the_node_it_stands_for_is_refused(
    name: str, scene: Scene, forge: Forge
) -> None:
    forge.files[name] = forge.files["now.json"]

    assert_refused(scene, forge, name)


def test_node_under_a_wrong_name_is_refused(scene: Scene, forge: Forge) -> None:
    forge.files[path_of("0123456789ABC") + ".json"] = forge.files[node_of(forge, STEP)]

    assert_refused(scene, forge, "0123456789ABC")


def test_node_whose_name_was_kept_and_content_changed_is_refused(
    scene: Scene, forge: Forge
) -> None:
    head = scene.name("Uwf-Node")
    document = forge.read(path_of(head) + ".json")
    document["payload"]["meta"] = {"text": "what was never said"}
    content = json.dumps(document).encode()
    forge.write(path_of(head) + ".json", content)
    forge.write("head.json", content)

    assert_refused(scene, forge, f"node {head} holds other content")


def test_node_that_is_not_what_its_type_says_is_refused(scene: Scene, forge: Forge) -> None:
    node = build_node(STEP, {"role": "writer"}, timestamp=1)
    forge.add_node(node)

    assert_refused(scene, forge, f"node {node.hash} .*StepNode")


def typed(scene: Scene, forge: Forge, schema: dict[str, Any], payload: Any) -> Node:
    """Add a node of a type of its own, and return it."""
    kind = build_node(META, schema, timestamp=1)
    node = build_node(kind.hash, payload, timestamp=1)
    forge.add_node(kind)
    forge.add_node(node)
    return node


def test_payload_that_breaks_its_schema_is_refused(scene: Scene, forge: Forge) -> None:
    node = typed(scene, forge, {"type": "object", "required": ["a"]}, {"b": 1})

    assert_refused(scene, forge, f"node {node.hash} breaks its schema")


def test_pattern_that_never_ends_is_refused(scene: Scene, forge: Forge) -> None:
    node = typed(scene, forge, {"type": "string", "pattern": "^(a+)+$"}, "a" * 60 + "!")

    assert_refused(scene, forge, f"node {node.hash}|took too much time")


def test_hole_in_the_closure_is_refused(scene: Scene, forge: Forge) -> None:
    content = forge.read(path_of(scene.name("Uwf-Node")) + ".json")["payload"]["content"]["$ref"]
    del forge.files[path_of(content) + ".md"]

    assert_refused(scene, forge, f"refers to {content}, which is not in the same commit")


@pytest.mark.parametrize("change", ["lost", "replaced"])
def test_node_that_was_there_stays(change: str, scene: Scene, forge: Forge) -> None:
    before = take_apart(scene.world.store, forge.parents[0])
    old = before.read("head.json")
    entry = before.files["head.json"]
    path = next(path for path in before.files if "/" in path and before.files[path] == entry)
    del forge.files[path]
    if change == "replaced":
        forge.write(path, json.dumps({**old, "timestamp": 5}).encode())
    name = path.removeprefix("nodes/").removesuffix(".json").replace("/", "")

    assert_refused(scene, forge, f"node {name} was (in the commit before and is missing|replaced)")


def test_chain_that_leads_back_into_itself_is_refused(scene: Scene, forge: Forge) -> None:
    old = scene.name("Uwf-Node")
    payload = forge.read("head.json")["payload"]
    number = 12345678901234567890
    name = NodeHash(encode_u64(number))
    fields = {field: payload[field] for field in ("role", "content", "agent")}
    node = forged({**fields, "prev": reference(name), "meta": {}}, number)
    assert node.hash == name
    forge.files["head.json"] = forge.files[forge.add_node(node)]
    forge.say(f"Uwf-Node: {old}", f"Uwf-Node: {name}")

    assert_refused(scene, forge, f"{name}")


EXTRA = {
    "a file at the top": ("notes.txt", 0o100644, "notes.txt"),
    "a file among the nodes": ("nodes/notes.txt", 0o100644, "nodes/notes.txt"),
    "git's own name": (".git/config", 0o100644, "(?i)dotgit|.git"),
    "git's own name in disguise": ("nodes/git~1", 0o100644, "(?i)dotgit|git~1"),
    "a module": (".gitmodules", 0o120000, "(?i)gitmodules"),
    "a program": (path_of("0123456789ABC") + ".json", 0o100755, "100755|0123456789ABC"),
    "a link": (path_of("0123456789ABC") + ".json", 0o120000, "120000|0123456789ABC"),
    "a folder": (
        path_of("0123456789ABC") + ".json/x",
        0o100644,
        "nodes/0/1/23456789ABC.json has mode 40000",
    ),
    "a name that is no text": ("nodes/\u202egpj.exe", 0o100644, "gpj.exe"),
}


@pytest.mark.parametrize("what", EXTRA)
def test_what_does_not_belong_there_is_refused(what: str, scene: Scene, forge: Forge) -> None:
    path, mode, told = EXTRA[what]

    forge.write(path, b"x", mode=mode)

    assert_refused(scene, forge, told)


def test_submodule_is_refused(scene: Scene, forge: Forge) -> None:
    forge.files["nodes/sub"] = (0o160000, forge.files["head.json"][1])

    assert_refused(scene, forge, "nodes/sub")


def test_hundred_thousand_files_are_refused(scene: Scene, forge: Forge) -> None:
    file = forge.files["now.json"]
    forge.files |= {f"nodes/0/0/{number:011}.json": file for number in range(100_000)}

    assert_refused(scene, forge, "takes [0-9]m, and at most 4m|00000000")


def test_tree_in_the_place_of_a_file_is_refused(scene: Scene, forge: Forge) -> None:
    forge.files["now.json/x"] = forge.files.pop("now.json")

    assert_refused(scene, forge, "now.json")


@pytest.mark.parametrize("place", ["node", "now.json", "top"])
def test_large_blob_is_refused_before_it_is_read(place: str, scene: Scene, forge: Forge) -> None:
    path = {"node": path_of("0123456789ABC") + ".json", "now.json": "now.json", "top": "x"}[place]
    forge.write(path, bytes(100 * MIB))

    told = {"top": "x, which does not belong there"}.get(place, "blob [0-9a-f]{40} takes 100m, and")
    assert_refused(scene, forge, told)


def test_limit_for_blobs_is_the_server_s_to_set(scene: Scene, forge: Forge) -> None:
    forge.add_node(build_node(TEXT, "words " * 1000, timestamp=1))
    scene.hub.set("uwf.maxBlobSize", "5k")
    try:
        assert_refused(scene, forge, "takes 6k, and at most 5k may be pushed here")
    finally:
        scene.hub.set("uwf.maxBlobSize", "32m")


@pytest.mark.parametrize(
    "content",
    [b"[" * 1_000_000, b"1" * 1_000_000, b'{"a":' * 100_000, b"\xff\xfe", b"", b'"\\ud800"'],
)
def test_file_that_no_parser_likes_is_refused(content: bytes, scene: Scene, forge: Forge) -> None:
    document = b'{"type": "%s", "payload": %s, "timestamp": 1}' % (TEXT.encode(), content)
    forge.write(path_of("0123456789ABC") + ".json", document)

    assert_refused(scene, forge, "node 0123456789ABC ")


# A hub with refs without end: 50,000 of them, by counted processes and writes.

_MANY = 50_000


def test_a_fetch_of_refs_that_are_all_wrong_ends(
    sites: Sites, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, other, thread = sites
    other.step(thread)
    other.push()
    tip = (hub / f"refs/threads/{thread}").read_text().strip()
    rows = "".join(f"{tip} refs/threads/01H{number:023}\n" for number in range(_MANY))
    (hub / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{rows}")
    started: list[object] = []

    def run_and_count(*args: Any, **options: Any) -> Any:
        started.append(args)
        return run_limited(*args, **options)

    monkeypatch.setattr("uwf_git.commands.remote.reconcile.run_limited", run_and_count)

    assert len(site.fetch().of("refused")) == _MANY
    assert len(started) < MOST_FAILED + 10
    # What is here goes on all the same.
    assert site.find(f"threads/{thread}") == tip
    assert list(site.refs("uwf/remotes/origin/threads")) == [f"uwf/remotes/origin/threads/{thread}"]
    assert not list((site.path / "uwf/locks").glob("01H*"))
