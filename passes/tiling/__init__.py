"""Regions, footprints, traffic, time and the choice of tiles, without IR."""
