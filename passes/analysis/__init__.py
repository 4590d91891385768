"""Pure analyses: regions, footprints, traffic and the tiling policy."""
