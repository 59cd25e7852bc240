"""Made-up runs that no adapter of its own reads."""

from pathlib import Path

NOWHERE = Path("/nowhere")
