"""The front end: monitored execution of eager PyTorch programs."""
