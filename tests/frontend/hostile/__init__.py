"""Programs written to break the front end, each run traced beside an eager twin."""
