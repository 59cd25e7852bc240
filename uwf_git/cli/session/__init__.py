"""The process: settings, streams, signals, and who called."""
