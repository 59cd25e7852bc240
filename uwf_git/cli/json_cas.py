"""`json-cas`: the table of its commands; none is imported here."""

import os
import sys
from typing import NoReturn

from uwf_git.cli.app.lazy_group import LazyCommand, LazyGroup, run, version_option
from uwf_git.cli.session.settings import leave

SCHEMA = LazyGroup(
    "schema",
    {
        "put": LazyCommand("uwf_git.cli.cas:schema_put_command", "Store a JSON Schema as a node"),
        "get": LazyCommand("uwf_git.cli.cas:schema_get_command", "Print a JSON Schema"),
        "list": LazyCommand("uwf_git.cli.cas:schema_list_command", "List the schemas"),
        "validate": LazyCommand(
            "uwf_git.cli.cas:schema_validate_command", "Check a node against its schema"
        ),
    },
    help_text="Store and inspect schemas, the types of nodes.",
    examples=["json-cas schema put person.schema.json"],
)

JSON_CAS = LazyGroup(
    "json-cas",
    {
        "init": LazyCommand("uwf_git.cli.cas:init_command", "Create a store"),
        "bootstrap": LazyCommand("uwf_git.cli.cas:bootstrap_command", "Store the built-in schemas"),
        "schema": SCHEMA,
        "put": LazyCommand("uwf_git.cli.cas:put_command", "Store a JSON value as a node"),
        "get": LazyCommand("uwf_git.cli.cas:get_command", "Print a node"),
        "has": LazyCommand("uwf_git.cli.cas:has_command", "Check whether a node is in the store"),
        "hash": LazyCommand(
            "uwf_git.cli.cas:hash_command",
            "Print the hash that a value would have, storing nothing",
        ),
        "cat": LazyCommand("uwf_git.cli.cas:cat_command", "Print only the payload of a node"),
        "refs": LazyCommand("uwf_git.cli.cas:refs_command", "List the nodes that a node refers to"),
        "walk": LazyCommand(
            "uwf_git.cli.cas:walk_command", "List every node that can be reached from a node"
        ),
        "verify": LazyCommand("uwf_git.cli.cas:verify_command", "Check nodes against their names"),
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
