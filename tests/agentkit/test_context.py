from uwf_git.agentkit import context
from uwf_git.engine import turn_context


def test_authors_have_every_name_that_a_context_is_made_of() -> None:
    own = {
        name: value
        for module in (turn_context, turn_context)
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }

    # The public names are older than the names inside.
    public = {"NodeView": "Node", "RoleView": "Role", "WorkflowView": "Workflow"}
    public["TryView"] = "Try"

    assert {public.get(name, name) for name in own} == set(context.__all__)
    for name, value in own.items():
        assert getattr(context, public.get(name, name)) is value
