"""From a recorded graph to the torch dialect."""
