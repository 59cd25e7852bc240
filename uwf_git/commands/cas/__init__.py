"""`json-cas`: read, put, check and walk nodes by hand."""
