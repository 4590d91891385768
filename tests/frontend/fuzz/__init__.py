"""A fuzzer: small generated programs, traced and checked against eager."""
