"""Rules per instruction: which state an instruction reads and writes."""
