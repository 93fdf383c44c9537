"""Objects that last as long as the job are left out of garbage collections.

A full collection visits every object of the process: modules, compiled statements, the plan. It stops all threads for
0.13 s of processor time, and a query that is registered or a document that arrives then waits for it. What is there
once a job has started stays until it ends, so there is nothing to find.
"""

from __future__ import annotations

import gc


class LastingObjects:
    def __init__(self) -> None:
        self._are_ours = False

    def begin(self) -> None:
        """Exempts all objects of the process, unless the program that runs the job has exempted some itself. It takes
        no time, since nothing is collected before."""
        self._are_ours = not gc.get_freeze_count()
        if self._are_ours:
            gc.freeze()

    def end(self) -> None:
        if self._are_ours:
            gc.unfreeze()
        self._are_ours = False
