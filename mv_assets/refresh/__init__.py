"""From what changed to what is done about it: looks, marks, plans, refreshes, audits, garbage."""
