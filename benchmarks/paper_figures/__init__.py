"""What the papers show and no other benchmark measures, one file for each figure."""
