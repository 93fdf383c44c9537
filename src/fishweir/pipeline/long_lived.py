"""Exempts objects that live as long as the job from garbage collection.

A full collection visits every object of the process: modules, compiled statements, the plan. It stops all threads for
0.13 s of processor time, and registrations and documents that arrive meanwhile have to wait. Objects that exist once a
job has started live until it ends, so a collection would find nothing.
"""

from __future__ import annotations

import gc


class LongLivedObjects:
    def __init__(self) -> None:
        self._are_ours = False

    def begin(self) -> None:
        """Exempts all objects of the process, unless the program that runs the job has exempted some itself. It takes
        no time, since nothing is collected first."""
        self._are_ours = not gc.get_freeze_count()
        if self._are_ours:
            gc.freeze()

    def end(self) -> None:
        if self._are_ours:
            gc.unfreeze()
        self._are_ours = False
