"""Records: guards, graph and side effects of one captured run, and which are kept."""
