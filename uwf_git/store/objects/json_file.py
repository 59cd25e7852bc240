"""JSON files of a store: written for people (UTF-8, two spaces) up to 32 MiB, read strictly."""

import json
from collections import Counter
from typing import Any

DEFAULT_BLOB_BYTES = 32 * 1024 * 1024
"""The largest blob that a shared store takes, unless it is told otherwise."""

_INDENTED = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False)
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encode_json(document: Any) -> bytes:
    """Return *document* as the bytes of a JSON blob: UTF-8, indented by two, a final newline.

    A document that would be larger than the default limit of a blob is written without blanks: a
    number in 500 lists takes 1,000 of them, so that 2 MB could become 1 GB.
    """
    parts, left = [], DEFAULT_BLOB_BYTES - 1
    for part in _INDENTED.iterencode(document):
        parts.append(part)
        left -= len(part) if part.isascii() else len(part.encode())
        if left < 0:
            return encode_compact(document)
    return "".join(parts).encode() + b"\n"


def encode_compact(document: Any) -> bytes:
    return _COMPACT.encode(document).encode() + b"\n"


def decode_json(content: bytes) -> Any:
    try:
        return _DECODER.decode(content.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(key for key, _value in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice[:60]!r} is there twice")
    return fields


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
