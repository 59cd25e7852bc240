"""What a picture shows, before anything has a place in it. All texts in a plan are clean."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from uwf_git.engine.key_shapes import mask_keys
from uwf_git.model.flow import Flow, Kind
from uwf_git.model.transition import Graph
from uwf_git.model.visible import one_line

MarkState = Literal["done", "now", "waits", "failed", "paused", "stopped"]


class Mark(NamedTuple):
    """What a thread has to say of one place."""

    state: MarkState
    badge: str
    """A sign and a few words."""

    words: str
    """The same as part of a sentence, after the place's name."""


Marks: TypeAlias = Mapping[str, Mark]
"""Marks by place: the name of a role (``$START`` and ``$END`` too), or the place in a flow."""


class ThreadMarks(NamedTuple):
    """What a picture says of a thread."""

    headline: str
    """One line: which thread, and how it stands."""

    marks: Marks


class Subject(NamedTuple):
    """What is to be drawn; its texts may be anything."""

    name: str
    description: str
    roles: Mapping[str, str]
    """The description of each role."""

    moves: Graph | Flow
    thread: ThreadMarks | None = None


class Station(NamedTuple):
    """A role in a graph, or one of its ends."""

    name: str
    note: str = ""
    mark: Mark | None = None
    is_end: bool = False
    is_reached: bool = True


class Way(NamedTuple):
    """All transitions from one station to another."""

    source: int
    target: int
    labels: tuple[str, ...]
    """Numbered in the order in which they are asked; empty if it is the only way, and always."""


class GraphPlan(NamedTuple):
    """A graph: stations in the order in which they are drawn, and ways by their numbers."""

    title: str
    about: str
    stations: tuple[Station, ...]
    ways: tuple[Way, ...]


class Branch(NamedTuple):
    """Blocks that run one after another."""

    label: str
    blocks: tuple["Block", ...]


class Block(NamedTuple):
    """A container or an agent, with what is in it."""

    place: str
    kind: Kind
    name: str
    """Of an agent or a workflow; for a container its heading."""

    note: str = ""
    """What stands below the name, or the condition below the heading."""

    mark: Mark | None = None
    branches: tuple[Branch, ...] = ()
    """One for each that may run beside the others; an empty one is the way past them."""


class FlowPlan(NamedTuple):
    """A flow: the blocks at the top."""

    title: str
    about: str
    blocks: tuple[Block, ...]
    marks: tuple[Mark | None, Mark | None]
    """Of the start and of the end."""


Plan: TypeAlias = GraphPlan | FlowPlan


def clean(text: str) -> str:
    """Return *text* as a picture may show it: one line, without controls, keys masked."""
    return one_line(mask_keys(text))


def clean_mark(mark: Mark | None) -> Mark | None:
    """Return *mark* with clean texts."""
    return mark and Mark(mark.state, clean(mark.badge), clean(mark.words))


def name_subject(subject: Subject) -> str:
    """Return the title of the picture of *subject*."""
    name = clean(subject.name)
    return name if subject.thread is None else f"{name}: {clean(subject.thread.headline)}"
