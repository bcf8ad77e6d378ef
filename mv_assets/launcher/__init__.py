"""How runs are begun at once: forked from a process that has loaded all that a run needs.

Dagster's own launcher starts a Python interpreter for each run, which takes seconds until it has imported
Dagster, pyspark and the definitions. Here the process that launches runs, which is Dagster's daemon, keeps
one beside it that has done so and then only forks. It is started at the first launch, for which nobody
waits, and ends with its daemon. Each run is a process of its own, at the end of a line of its own to the
launcher: on it comes what is to be run, and by it each of the two learns of the end of the other. So nothing
has to be found, locked or cleaned up, and a run that was not begun this way, for whatever reason, can safely
be begun the plain way.
"""

from mv_assets.launcher.launcher import WarmRunLauncher

__all__ = ["WarmRunLauncher"]
