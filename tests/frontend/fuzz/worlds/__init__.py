"""Sources of the state that generated programs use, one for each grammar."""
