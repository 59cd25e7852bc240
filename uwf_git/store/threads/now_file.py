"""Read now.json: a thread's state as one of its commits has it. Format: FORMAT.md, "now.json"."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.thread import NotAPresent, ThreadState, parse_present
from uwf_git.store.objects.json_file import decode_json


class NowFile(NamedTuple):
    """A now.json: the state, and the document as it was written."""

    present: ThreadState
    document: Mapping[str, Any]


def parse_now(content: bytes) -> NowFile:
    """Read the content of a now.json, or raise ``NotAPresent``."""
    try:
        document = canonical(decode_json(content))
        return NowFile(parse_present(document), document)
    except NotCanonical as error:
        raise NotAPresent(error.message) from error
    except RecursionError as error:
        raise NotAPresent("nested too deeply") from error
    except ValueError as error:
        raise NotAPresent(str(error)) from error
