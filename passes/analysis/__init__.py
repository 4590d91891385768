"""What is read from IR: models of operators, dependences, summaries."""
