"""The store as a place: init, init --shared, config, gc, debug log."""
