"""Clocks that differ, clocks that are set, and calendars."""
