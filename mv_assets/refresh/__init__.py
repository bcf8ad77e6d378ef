"""From what changed to what is to be done about it: looks, marks and plans."""
