"""The built-in demo: a city's taxi trips, a feeder, and the events that a lake has."""

from mv_assets.demo.place import Demo, lying_here, project_file

__all__ = ["Demo", "lying_here", "project_file"]
