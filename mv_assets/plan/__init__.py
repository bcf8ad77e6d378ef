"""What to do: a pure function of what was observed (`planner`), and of what was asked for (`scope`)."""
