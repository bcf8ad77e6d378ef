"""Which view answers for which time, by the tables and maps as they are now."""
