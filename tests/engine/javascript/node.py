"""Ask node for the answers of expressions. Run as a program, write answers.json anew.

    python tests/engine/javascript/node.py

asks node again for each expression of answers.json; a new one is a row with `null` for an answer.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent
TABLE = HERE / "answers.json"
PROGRAM = shutil.which("node")


class Node:
    """A process of node that answers until the `with` ends."""

    def __init__(self) -> None:
        command = [PROGRAM or "node", str(HERE / "answer.js")]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="ascii"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(
        self, texts: Sequence[str], names: dict[str, Any], *, filled: bool = False
    ) -> list[Any]:
        """Return node's answers as answer.js tells them; *filled* as a template has them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"texts": texts, "names": json.dumps(names), "filled": filled}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answers: list[Any] = json.loads(self._process.stdout.readline())
        return answers


def main() -> None:
    """Write the table anew."""
    table = json.loads(TABLE.read_text())
    with Node() as node:
        for part in ("answered", "refused"):
            texts = [text for text, _ in table[part]]
            table[part] = list(zip(texts, node.ask(texts, table["names"]), strict=True))
    TABLE.write_text(written(table))
    sys.stdout.write(f"{len(table['answered'])} answered, {len(table['refused'])} refused\n")


def written(table: dict[str, Any]) -> str:
    """Return the table's text: a line for each row."""
    parts = [f'"names": {json.dumps(table["names"])}']
    for part in ("answered", "refused"):
        rows = ",\n".join(json.dumps(row) for row in table[part])
        parts.append(f'"{part}": [\n{rows}\n]')
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    main()
