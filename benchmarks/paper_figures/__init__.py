"""Figures and tables of the papers that no other benchmark measures, one file for each."""
