"""Read now.json: a thread's state as one of its commits has it. Format: FORMAT.md, "now.json"."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.frozen import freeze
from uwf_git.model.thread import NotAPresent, ThreadState, parse_present
from uwf_git.store.objects.json_file import decode_json


class NowFile(NamedTuple):
    """A now.json: the state, and the document as it was written."""

    present: ThreadState
    document: Mapping[str, Any]


# A thread with many branches is read for each step of each of them.
_LONG_BYTES = 8 * 1024
_MOST_KNOWN = 4
_SPLIT = b'"split": {'


def parse_now(content: bytes) -> NowFile:
    """Read the content of a now.json, or raise ``NotAPresent``."""
    if len(content) >= _LONG_BYTES and _SPLIT in content:
        return _parse_long(content)
    return _parse(content, lambda document: document)


@lru_cache(maxsize=_MOST_KNOWN)
def _parse_long(content: bytes) -> NowFile:
    # Shared, so nobody may change it.
    return _parse(content, freeze)


def _parse(content: bytes, share: Callable[[Any], Any]) -> NowFile:
    try:
        document = share(canonical(decode_json(content)))
        return NowFile(parse_present(document), document)
    except NotCanonical as error:
        raise NotAPresent(error.message) from error
    except RecursionError as error:
        raise NotAPresent("nested too deeply") from error
    except ValueError as error:
        raise NotAPresent(str(error)) from error
