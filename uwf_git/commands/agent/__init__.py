"""`uwf agent`: which agent commands are trusted, and whether they can run."""
