"""`json-cas`: the table of its commands; none is imported here."""

import os
import sys
from typing import NoReturn

from uwf_git.cli.app.lazy_group import LazyGroup, own, run, version_option
from uwf_git.cli.session.settings import leave

SCHEMA = LazyGroup(
    "schema",
    {
        "put": own("cas:schema_put_command", "Store a JSON Schema as a node"),
        "get": own("cas:schema_get_command", "Print a JSON Schema"),
        "list": own("cas:schema_list_command", "List the schemas"),
        "validate": own("cas:schema_validate_command", "Check a node against its schema"),
    },
    help_text="Store and inspect schemas, the types of nodes.",
    examples=["json-cas schema put person.schema.json"],
)

JSON_CAS = LazyGroup(
    "json-cas",
    {
        "init": own("cas:init_command", "Create a store"),
        "bootstrap": own("cas:bootstrap_command", "Store the built-in schemas"),
        "schema": SCHEMA,
        "put": own("cas:put_command", "Store a JSON value as a node"),
        "get": own("cas:get_command", "Print a node"),
        "has": own("cas:has_command", "Check whether a node is in the store"),
        "hash": own("cas:hash_command", "Print the hash that a value would have, storing nothing"),
        "cat": own("cas:cat_command", "Print only the payload of a node"),
        "refs": own("cas:refs_command", "List the nodes that a node refers to"),
        "walk": own("cas:walk_command", "List every node that can be reached from a node"),
        "verify": own("cas:verify_command", "Check nodes against their names"),
    },
    help_text="Store and read content-addressed JSON nodes, in the store that uwf uses.\n\n"
    "A node's name is a hash of its type and its content; any unique beginning of it is enough.",
    examples=["json-cas get 8FWKR3TN5V1QA"],
)
JSON_CAS.params.insert(0, version_option())


def main() -> int:
    """Run `json-cas` with the command line and the environment of this process."""
    return run(JSON_CAS, sys.argv[1:], prog="json-cas", environ=dict(os.environ))


def program() -> NoReturn:
    """Run `json-cas` as the whole process."""
    leave(main())
