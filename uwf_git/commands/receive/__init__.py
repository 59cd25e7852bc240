"""What a hub accepts: the refs that were pushed, and the rules for them and their commits."""
