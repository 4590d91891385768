"""A monitored run from the outside: started, ended, made into what a record holds."""
