"""One turn before it is played: whose it is, which agent, which limits, retries, work directory."""
