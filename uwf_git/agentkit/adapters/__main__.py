"""Run the adapter that the first word names: ``python -m uwf_git.agentkit.adapters claude …``."""

import sys
from importlib import import_module

sys.exit(import_module(f"uwf_git.agentkit.adapters.{sys.argv.pop(1)}").main())
