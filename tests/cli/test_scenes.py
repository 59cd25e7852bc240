"""What the programs print, scene by scene: pages that are run again, reviewed by eye."""

from collections.abc import Callable

import pytest
from cli.program import Uwf
from cli.scenes import PAGES, retell


@pytest.mark.parametrize("page", sorted(each.stem for each in PAGES.glob("scenes/*.txt")))
def test_scene_is_as_it_was(
    page: str, uwf: Uwf, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    page = f"scenes/{page}.txt"

    golden(f"screens/{page}", retell(page, uwf, monkeypatch, {"BYTES": "\udcff"}))
