"""Values: what workflows, nodes and threads are. No I/O, no clock, no randomness."""
