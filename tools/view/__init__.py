"""Pages that show what the compiler decided."""
