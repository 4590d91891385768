"""Sub-commands of `magweld`, one module each; each is imported when it is asked for."""
