"""Markdown at a terminal; expected screens are golden files."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.markdown_screen import render_markdown
from uwf_git.cli.output.screen import Screen, display_width

TEXT = """\
# Fix the login bug

thread `01J7K9M2XNPQR5VWBCDF8G3H4T` · **completed**

> quoted task
> of two lines

## 1. planner: Three steps

- **filesChanged**:
  - `a.py`
  - b.py
- **ok**: true

| file | what |
|---|---|
| a.py | escapes the name |
| 日本.py | test |

1. one
2. [two](https://example.com/x)

```python
if a < b:
    print("<b>" * 40)
```

<details>HTML is text</details>
"""
HOSTILE = (
    "a &#27;[2J &#x1b;]0;t&#7; `\x1b[31m` [x](http://e/&#27;[1m) ![i&#27;](j)\n\n"
    "```\x1b&#27;\n\x9b1m\n```"
)


@pytest.mark.parametrize("columns", [40, 80])
def test_markdown_is_shown_as_it_is_meant(columns: int, golden: Callable[[str, str], None]) -> None:
    shown = render_markdown(TEXT, Screen(columns))

    assert "\x1b" not in shown
    golden(f"screens/markdown-{columns}.txt", shown)


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_no_word_is_lost(columns: int) -> None:
    text = "# At ![a](b.png) all\n\nIn ![a chart](c.png) it is ~~not~~ more than they said it was."
    cells = (
        "uwf_git/commands/inspect/overview.py",
        "品質検査の結果は不合格でした承認しないでください",
    )

    shown = render_markdown(text, Screen(columns))
    table = render_markdown(f"| {cells[0]} |\n|---|\n| {cells[1]} |", Screen(columns))

    assert shown.split() == text.removeprefix("# ").split()
    assert all(cell in "".join(table.split()) for cell in cells)


def test_colours_are_of_the_palette() -> None:
    shown = render_markdown(TEXT, Screen(80, has_colour=True))

    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", shown) for code in found.split(";")}
    assert codes
    assert codes <= {*"012349", *(str(base + each) for base in (30, 90) for each in range(8))}


def test_entities_and_controls_cannot_reach_the_terminal() -> None:
    for has_colour in (False, True):
        shown = render_markdown(HOSTILE, Screen(80, has_colour=has_colour))
        rest = re.sub(r"\x1b\[[0-9;]*m", "", shown) if has_colour else shown
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", rest)
        assert "[2J" in rest


MARKS = [
    "# ", "> ", "- ", "1. ", "| a | b |\n|---|---|\n", "```", "`", "**", "_", "[x](y)",
    "![a](b)", "&#27;", "&#155;", "<b>", "\n", "\n\n", "    ", "word ", "日本語 ", "long" * 30,
    "---\n", "~~", "\\",
]  # fmt: skip


@given(st.lists(st.sampled_from(MARKS), max_size=30).map("".join), st.sampled_from([20, 60, 80]))
def test_any_markdown_fits_and_has_no_controls(text: str, columns: int) -> None:
    lines = render_markdown(text, Screen(columns)).split("\n")

    assert max(map(display_width, lines)) <= columns
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", "".join(lines))


def test_rich_is_loaded_by_nothing_else() -> None:
    code = (
        "import sys, pkgutil, importlib, uwf_git.cli as cli\n"
        "for found in pkgutil.walk_packages(cli.__path__, 'uwf_git.cli.'):\n"
        "    if not found.name.endswith('markdown_screen'):\n"
        "        importlib.import_module(found.name)\n"
        "print('rich' in sys.modules or 'markdown_it' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout == "False\n"
