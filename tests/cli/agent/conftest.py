from pathlib import Path

import pytest
from cli.program import Uwf, make_uwf

from uwf_git.cli.settings import Session


@pytest.fixture
def uwf(tmp_path: Path, session: Session, capsys: pytest.CaptureFixture[str]) -> Uwf:
    """Run `uwf` on a store of the test's own: ``uwf("agent", "list")``."""
    return make_uwf(tmp_path, session, capsys)
