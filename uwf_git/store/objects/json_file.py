"""JSON files of a store: written for people (UTF-8, two spaces), read strictly."""

import json
from collections import Counter
from typing import Any


def encode_json(document: Any) -> bytes:
    """Return *document* as the bytes of a JSON blob: UTF-8, indented by two, a final newline.

    Raises:
        ValueError: it holds a value that could not be read back, as NaN or a lone surrogate.
    """
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n"


def decode_json(content: bytes) -> Any:
    """Read a JSON blob.

    Raises:
        ValueError: it is not JSON in UTF-8, holds a key twice, NaN or Infinity, or is nested too
            deeply. Of two equal keys, readers choose differently.
    """
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
