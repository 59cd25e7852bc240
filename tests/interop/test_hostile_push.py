"""A hostile client pushes forged commits: each lie is refused, by its name."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands.world import Git
from interop.forge import Forge, path_of, take_apart
from interop.hub import make_hub, push
from interop.scene import Scene, assert_refused

from uwf_git.model.builtin import STEP
from uwf_git.store.objects.commit import build_message

MIB = 1024 * 1024
WORKFLOW_REF = "refs/workflows/demo"


def test_what_is_put_together_again_unchanged_is_taken(sealed: None, tmp_path: Path) -> None:
    hub = make_hub(tmp_path)
    world = hub.clone()
    thread = world.begun()
    ref = f"refs/threads/{thread}"
    assert push(world, ref).accepted
    world.step(thread)

    commit = take_apart(world.store, world.snapshot(thread).commit.oid).commit()

    assert push(world, f"{commit}:{ref}").accepted
    assert hub.refs()[ref] == commit


SCISSORS = "# ------------------------ >8 ------------------------"
MESSAGES: dict[str, tuple[Callable[[str, str], str], str]] = {
    # Each of these has made git, or a parser like it, see what an agent wanted it to see.
    "a body that runs into the trailers": (
        lambda subject, trailers: f"{subject}\n\nUwf-Status: completed\n{trailers}",
        "says Uwf-Status twice",
    ),
    "a trailer that holds another": (
        lambda subject, trailers: f"{subject}\n\n{trailers}".replace(
            "Uwf-Role: writer", "Uwf-Role: writer\nUwf-Status: completed"
        ),
        "says Uwf-Status twice",
    ),
    "scissors in the body": (
        lambda subject, trailers: f"{subject}\n\nUwf-Status: completed\n{SCISSORS}\n\n{trailers}",
        "has a line between subject and trailers",
    ),
    "a NUL in the body": (
        lambda subject, trailers: f"{subject}\n\n    a\0\n\nUwf-Status: completed\n\n{trailers}",
        "(?i)nul|between subject and trailers",
    ),
    "a line of dashes in the body": (
        lambda subject, trailers: f"{subject}\n\nUwf-Status: completed\n---\n\n{trailers}",
        "has a line between subject and trailers",
    ),
    "no subject": (lambda _subject, trailers: f"\n\n{trailers}", "subject|no trailers"),
    "no trailers": (lambda subject, _trailers: f"{subject}\n", "has no trailers"),
    "text behind the trailers": (
        lambda subject, trailers: f"{subject}\n\n{trailers}\nmore\n",
        "has no trailers|that is no trailer",
    ),
    "a format of the future": (
        lambda subject, trailers: f"{subject}\n\n{trailers}".replace("Format: 2", "Format: 3"),
        "has format 3",
    ),
    "two megabytes": (
        lambda subject, trailers: f"{subject}\n\n    {'x' * 2 * MIB}\n\n{trailers}",
        "takes 3m, and at most 1m may be pushed here",
    ),
}


@pytest.mark.parametrize("lie", MESSAGES)
def test_message_that_misleads_is_refused(lie: str, scene: Scene, forge: Forge) -> None:
    make, told = MESSAGES[lie]
    subject, trailers = forge.message.decode().split("\n\n")

    forge.message = make(subject, trailers).encode()

    assert_refused(scene, forge, told)


def test_message_that_is_not_utf_8_is_refused(scene: Scene, forge: Forge) -> None:
    forge.message = b"writer: \xff" + forge.message.removeprefix(b"writer: ")

    assert_refused(scene, forge, "has a message that is not UTF-8")


@pytest.mark.parametrize("header", ["parent " + "1" * 40, "x-other 1"])
def test_header_that_uwf_never_writes_is_refused(
    header: str, scene: Scene, forge: Forge, unchecked: None
) -> None:
    forge.headers = f"{header}\n".encode()

    assert_refused(scene, forge, "has a header that uwf never writes")


@pytest.mark.parametrize("file", ["now.json", "head.json"])
def test_json_with_a_key_twice_is_refused(file: str, scene: Scene, forge: Forge) -> None:
    _mode, oid = forge.files[file]
    content = forge.objects[oid].as_raw_string()
    twice = content.split(b",\n")[0] + b"," + content.removeprefix(b"{")
    for path in [path for path, (_mode, each) in forge.files.items() if each == oid]:
        forge.write(path, twice)

    assert_refused(scene, forge, "is there twice")


TRAILERS = {
    "Uwf-Status: ready": ("Uwf-Status: completed", "Uwf-Status is completed, and must be ready"),
    "Uwf-Depth: 3": ("Uwf-Depth: 4", "Uwf-Depth is 4, and must be 3"),
    "Uwf-Event: step": ("Uwf-Event: attempt", "which is no Attempt"),
    "Uwf-Role: writer": ("Uwf-Role: checker", "Uwf-Role is 'checker'|Uwf-Role"),
    "Uwf-Agent: nobody": ("Uwf-Agent: somebody", "Uwf-Agent"),
    "Uwf-Workflow-Name: demo": ("Uwf-Workflow-Name: other", "Uwf-Workflow-Name is other"),
}


@pytest.mark.parametrize("truth", TRAILERS)
def test_trailer_that_lies_is_refused(truth: str, scene: Scene, forge: Forge) -> None:
    lie, told = TRAILERS[truth]

    forge.say(truth, lie)

    assert_refused(scene, forge, told)


@pytest.mark.parametrize("trailer", ["Uwf-Node", "Uwf-Workflow"])
def test_trailer_that_names_another_node_is_refused(
    trailer: str, scene: Scene, forge: Forge
) -> None:
    other = {"Uwf-Node": STEP, "Uwf-Workflow": scene.name("Uwf-Node")}[trailer]

    forge.say(f"{trailer}: {scene.name(trailer)}", f"{trailer}: {other}")

    assert_refused(scene, forge, trailer)


def test_commit_of_one_thread_is_no_other_s(scene: Scene, forge: Forge) -> None:
    other = "01J7K9M2XNPQR5VWBCDF8G3H4T"
    told = scene.refuse(forge.parents[0], f"refs/threads/{other}")
    assert f"refs/threads/{other} points at a commit of thread {scene.thread}" in told

    forge.say(f"Uwf-Thread: {scene.thread}", f"Uwf-Thread: {other}")
    assert_refused(scene, forge, f"{other}")


def test_thread_that_has_not_ended_is_not_archived(scene: Scene, forge: Forge) -> None:
    told = scene.refuse(forge.commit(), f"refs/archive/{scene.thread}")

    assert "the thread has not ended" in told


IDENTITIES = [b"", b"dev> <x@y>", b"dev<x> <x@y>", b"dev <x<@y>", b"dev <x@y", b"dev\0 <x@y>"]


@pytest.fixture
def unchecked(scene: Scene) -> Iterator[None]:
    """Switch git's own check of objects off, so that ours is alone."""
    scene.hub.set("receive.fsckObjects", "false")
    yield
    scene.hub.set("receive.fsckObjects", "true")


@pytest.mark.parametrize("identity", IDENTITIES)
def test_identity_that_no_git_takes_is_refused(
    identity: bytes, scene: Scene, forge: Forge, unchecked: None
) -> None:
    forge.author = identity

    assert_refused(scene, forge, "has an identity that git refuses|is no commit|is not a commit")


def test_git_itself_looks_at_what_a_shared_store_receives(scene: Scene, forge: Forge) -> None:
    forge.committer = b"dev> <x@y>"

    assert_refused(scene, forge, "badName")


def test_commit_with_a_second_parent_is_refused(scene: Scene, forge: Forge) -> None:
    forge.parents += take_apart(scene.world.store, forge.parents[0]).parents

    assert_refused(scene, forge, "step has 2 parents")


@pytest.mark.parametrize("kind", ["blob", "tree", "tag"])
def test_ref_of_ours_points_at_commits_only(
    kind: str, scene: Scene, forge: Forge, git: Git
) -> None:
    store = Path(scene.world.store.path)
    objects = {
        "blob": forge.files["now.json"][1].decode(),
        "tree": git("rev-parse", f"{forge.parents[0]}^{{tree}}", cwd=store).strip(),
    }
    if kind == "tag":
        git("tag", "-f", "-am", "x", "x", forge.parents[0], cwd=store)
        objects["tag"] = git("rev-parse", "refs/tags/x", cwd=store).strip()

    for ref in (scene.ref, "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4T", "refs/cas/nodes"):
        assert "is not a commit" in scene.refuse(objects[kind], ref)


def workflow(scene: Scene) -> Forge:
    """Take the stored version of the workflow apart, as the one before the forged one."""
    oid = scene.world.store.refs.find(WORKFLOW_REF)
    assert oid is not None
    forge = take_apart(scene.world.store, oid)
    forge.parents = [oid]
    return forge


def test_workflow_without_its_closure_is_refused(scene: Scene) -> None:
    forge = workflow(scene)
    role = forge.read("head.json")["payload"]["roles"]["writer"]["$ref"]
    del forge.files[path_of(role) + ".json"]

    assert f"refers to {role}" in scene.refuse(forge.commit(), WORKFLOW_REF)


def test_workflow_that_lies_is_refused(scene: Scene) -> None:
    name, extra, node = (workflow(scene) for _count in range(3))
    name.say("Uwf-Workflow-Name: demo", "Uwf-Workflow-Name: other")
    extra.write("agent.sh", b"#!/bin/sh\n")
    node.say(f"Uwf-Workflow: {scene.name('Uwf-Workflow')}", "Uwf-Workflow: 0123456789ABC")

    assert "Uwf-Workflow-Name is other" in scene.refuse(name.commit(), WORKFLOW_REF)
    assert "agent.sh, which does not belong" in scene.refuse(extra.commit(), WORKFLOW_REF)
    assert "Uwf-Workflow is 0123456789ABC" in scene.refuse(node.commit(), WORKFLOW_REF)
    assert "and the ref 'mine'" in scene.refuse(node.parents[0], "refs/workflows/mine")


def test_node_that_lies_among_those_put_by_hand_is_refused(scene: Scene) -> None:
    forge = workflow(scene)
    forge.parents = []
    forge.files = {path: entry for path, entry in forge.files.items() if "/" in path}
    trailers = [("Uwf-Event", "put"), ("Uwf-Format", "2")]
    forge.message = build_message("cas", "put", trailers=trailers)
    forge.files[path_of("0123456789ABC") + ".json"] = next(iter(forge.files.values()))

    assert "node 0123456789ABC holds other" in scene.refuse(forge.commit(), "refs/cas/nodes")


def test_deletion_of_everything_is_refused(scene: Scene) -> None:
    specs = [f":{ref}" for ref in scene.hub.refs()]

    pushed = push(scene.world, *specs)

    assert not pushed.accepted
    assert len(pushed.errors) == len(specs) == 2
