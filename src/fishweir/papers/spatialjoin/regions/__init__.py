"""SJ-Batch, SJ-Immediate and the baseline IBS: the selections of Spatial Join CQ, as kernels over query regions.

`sj_batch` and `sj_immediate` search `query_index`, with `corner` and `hilbert`; `ibs` is the baseline. They have the
interface of the engine's own kernels (evaluate/select/boxes). Importing this package registers them there.
"""

from fishweir.evaluate.select.boxes import KERNELS
from fishweir.papers.spatialjoin.regions.ibs import IBSIndex
from fishweir.papers.spatialjoin.regions.sj_batch import SJBatch
from fishweir.papers.spatialjoin.regions.sj_immediate import SJImmediate

__all__ = ["NAMES", "IBSIndex", "SJBatch", "SJImmediate"]

NAMES = ("sj-batch", "sj-immediate", "ibs")

KERNELS.update(zip(NAMES, (SJBatch, SJImmediate, IBSIndex), strict=True))
