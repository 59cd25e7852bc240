"""A model with tools, in a bounded loop, confined to a work directory."""
