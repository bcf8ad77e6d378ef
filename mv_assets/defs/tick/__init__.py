"""A tick of a sensor: it looks, plans, leaves out what others have claimed, and asks for the rest."""
