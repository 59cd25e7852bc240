"""Values: what nodes, workflows and threads are. No I/O, no clock, no randomness."""
