"""Reading and building of IR that several passes share."""
