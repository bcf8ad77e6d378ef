"""Reading views: rows that can be trusted, and nothing else as if it could be."""
