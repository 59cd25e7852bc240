from uwf_git import agentkit
from uwf_git.engine import turn_context


def test_authors_have_every_name_that_a_context_is_made_of() -> None:
    own = {
        name: value
        for name, value in vars(turn_context).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == turn_context.__name__
    }

    # The public names are older than the names inside.
    public = {"NodeView": "Node", "RoleView": "Role", "WorkflowView": "Workflow"}
    public["TryView"] = "Try"

    assert {public.get(name, name) for name in own} <= set(agentkit.__all__)
    for name, value in own.items():
        assert getattr(agentkit, public.get(name, name)) is value
