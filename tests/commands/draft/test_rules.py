from uwf_git.commands.draft import check_rules, find_problems
from uwf_git.model.yaml.reader import parse_yaml


def broken(text: str) -> list[str]:
    """List the paths of what the rules find in a file, by line."""
    document = parse_yaml(text)
    return [each.path for each in find_problems(document, check_rules)]


def test_commands_are_found_wherever_the_language_has_them() -> None:
    text = """\
defaultAgent: null
agentOverrides: {a: human, b: uwf-shell x, c: uwf-human, d: null, e: {command: human}}
roles:
  a: {checks: [x]}
  b: {outputSchema: {properties: {checks: true}}}
root:
  checks: [x]
  nodes:
    - {verifiedBy: {checks: [x]}}
    - nodes: [{checks: [x]}]
      else: [{nodes: [{checks: [x]}]}]
"""

    assert sorted(broken(text)) == [
        "agentOverrides.b",
        "agentOverrides.c",
        "agentOverrides.d",
        "agentOverrides.e",
        "defaultAgent",
        "roles.a.checks",
        "root.checks",
        "root.nodes[0].verifiedBy.checks",
        "root.nodes[1].else[0].nodes[0].checks",
        "root.nodes[1].nodes[0].checks",
    ]
