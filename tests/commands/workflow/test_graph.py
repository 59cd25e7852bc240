from commands.world import World

from uwf_git.commands.workflow.build import picture_workflow
from uwf_git.model.workflow import END, START, Transition

GRAPH = {
    START: (Transition("writer", None),),
    "writer": (Transition("checker", None),),
    "checker": (Transition("writer", "meta.ok = false"), Transition(END, None)),
}


def test_a_picture_shows_the_roles_and_transitions_of_a_workflow(world: World) -> None:
    world.put()
    picture = picture_workflow(world.store, "demo", cwd=str(world.place))
    assert picture.subject.name == "demo"
    assert picture.subject.roles == {"writer": "Writes.", "checker": "Checks."}
    assert picture.subject.moves == GRAPH
    assert picture.found.file is None
