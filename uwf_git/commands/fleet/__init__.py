"""Many machines: who runs a thread of a hub, what of it can go on, and one run of one thread."""
