"""A model with tools in a bounded loop; the file tools stay in the work directory."""
