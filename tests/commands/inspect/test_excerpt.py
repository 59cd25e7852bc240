"""Excerpts: keys masked, also at the cut; and git prints the whole."""

from collections.abc import Callable
from pathlib import Path

from commands.world import World, says
from web.stories import KEY, SECRET, played

from uwf_git.commands.inspect.story import (
    ASIDE_BYTES,
    CONTENT_BYTES,
    cut_text,
    excerpt_diff,
    excerpt_json,
    excerpt_node,
    make_mask,
    place_in_git,
)
from uwf_git.model.builtin import find_reference

MASK = make_mask({"DEPLOY_PASSWORD": SECRET})


def plain(text: str) -> str:
    return text


def test_a_text_is_cut_between_characters() -> None:
    assert cut_text("äöü", plain, "git x", most=6)["isCut"] is False
    cut = cut_text("äöü", plain, "git x", most=5)
    assert cut == {"text": "äö", "bytes": 6, "isCut": True, "command": "git x"}


def test_no_part_of_a_key_is_left_at_the_cut() -> None:
    for before in range(8_150, 8_200):
        text = "a " * (before // 2) + KEY + " b" * 20_000
        shown = cut_text(text, MASK, "git x", most=ASIDE_BYTES)["text"]
        assert KEY[:6] not in shown
    many = (KEY + " ") * 2_000
    assert KEY[:6] not in cut_text(many, MASK, "git x", most=ASIDE_BYTES)["text"]


def test_git_prints_the_whole_of_what_is_cut(world: World, git: Callable[..., str]) -> None:
    prompt = "\n".join(f"line {number}" for number in range(10_000))
    thread = world.begun()
    world.step(thread, played({"text": "x"}, "said", ms=1, prompt=prompt))
    snapshot = world.snapshot(thread)
    step = snapshot.get_head_node()

    cut = excerpt_node(snapshot, step.payload["prompt"], plain)

    assert cut is not None
    assert cut["isCut"]
    assert prompt.startswith(cut["text"])
    assert len(cut["text"]) == ASIDE_BYTES
    said = git(*cut["command"].split()[1:], cwd=Path(world.store.path))
    assert said.endswith(f"---\n{prompt}")
    place = place_in_git(snapshot, step)
    assert step.hash in git("show", place, cwd=Path(world.store.path)) or place.endswith(".json")


def test_a_long_value_is_cut_as_its_text(world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x" * 70_000, KEY: SECRET}))
    snapshot = world.snapshot(thread)
    step = snapshot.get_head_node()

    cut = excerpt_json(snapshot, step, step.payload["meta"], MASK)

    assert cut["isCut"]
    assert len(cut["text"]) <= CONTENT_BYTES
    assert excerpt_json(snapshot, step, {KEY: 1}, MASK) == {"value": {"[masked]": 1}}


def test_a_difference_has_no_names_and_git_tells_the_same(
    world: World, git: Callable[..., str]
) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x"}, "one\ntwo\n"))
    one = world.snapshot(thread)
    world.step(thread, says({"ok": False}, "one\nthree\n"))
    other = world.snapshot(thread)
    sides = []
    for snapshot in (one, other):
        name = find_reference(snapshot.get_head_node().payload["content"])
        assert name is not None
        sides.append((snapshot, snapshot.get_node(name)))

    diff = excerpt_diff(sides[0], sides[1], plain)

    assert diff is not None
    assert diff["text"] == "@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    told = git(*diff["command"].split()[1:], cwd=Path(world.store.path))
    assert "-two\n+three\n" in told
    assert excerpt_diff(sides[0], sides[0], plain) is None
