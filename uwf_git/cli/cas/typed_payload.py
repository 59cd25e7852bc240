"""The arguments `[TYPE] FILE` of `put` and `hash`: a payload from a file, and its type."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NamedTuple

import click

from uwf_git.cli.app.json_argument import read_json_input
from uwf_git.cli.app.parameters import INPUT, Input, not_text
from uwf_git.errors import BadUsage


def _wrong_words(wanted: str, given: int, *, path: str) -> BadUsage:
    words = "no words" if given == 0 else "1 word" if given == 1 else f"{given} words"
    return BadUsage(
        f"{path} takes {wanted}, not {words}",
        code="wrong-words",
        hint="FILE may be `-`, standard input; `json-cas schema list` names the types; "
        f"`{path} --help` shows how it is typed",
        given=given,
    )


class TypedPayload(NamedTuple):
    """A payload named on the command line, not yet read."""

    type_text: str | None
    """The type as it was typed; None for a meta-schema."""

    source: Input
    as_text: bool

    def read(self) -> Any:
        """Read the payload.

        Raises:
            BadUsage: it is not JSON, and --text was not given.
        """
        return read_exact_text(self.source) if self.as_text else read_json_input(self.source)


def read_exact_text(source: Input) -> str:
    """Read all of *source* as UTF-8, byte for byte: what is stored is printed unchanged.

    Raises:
        Refused: it is not UTF-8.
    """
    content = source.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise not_text(source.name, offset=error.start) from None


def typed_payload(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument ``given: TypedPayload`` to a verb, from its arguments and options."""

    def with_payload(
        *args: Any, words: tuple[Input, ...], self_typed: bool, as_text: bool, **others: Any
    ) -> Any:
        given = _understand(words, self_typed=self_typed, as_text=as_text)
        return function(*args, given=given, **others)

    wrapped = update_wrapper(with_payload, function)
    with_text = click.option(
        "--text", "as_text", is_flag=True, help="FILE is text: the payload is a string of it."
    )(wrapped)
    with_self = click.option(
        "--self", "self_typed", is_flag=True, help="A meta-schema, which is its own type: no TYPE."
    )(with_text)
    return click.argument("words", nargs=-1, type=INPUT, metavar="[TYPE] FILE")(with_self)


def _understand(words: tuple[Input, ...], *, self_typed: bool, as_text: bool) -> TypedPayload:
    path = click.get_current_context().command_path
    if self_typed:
        if len(words) != 1:
            raise _wrong_words("FILE alone with --self", len(words), path=path)
        return TypedPayload(None, words[0], as_text)
    if len(words) != 2:  # noqa: PLR2004 (TYPE and FILE)
        raise _wrong_words("TYPE and FILE", len(words), path=path)
    return TypedPayload(words[0].path, words[1], as_text)
