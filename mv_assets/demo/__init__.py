"""The built-in demo: a city's taxi trips, a feeder, and the events that a lake has."""

from mv_assets.demo.place import Demo, project_file, unnamed

__all__ = ["Demo", "project_file", "unnamed"]
