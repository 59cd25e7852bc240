"""The store: the only place that knows git. FORMAT.md beside this file is its contract."""
