"""Look at threads: show, list, read, diff, context, search, logs. Nothing here writes."""
