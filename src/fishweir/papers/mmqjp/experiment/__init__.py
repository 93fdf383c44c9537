"""`fishweir bench mmqjp`: value joins between documents, after section 6 of MMQJP.

`work` generates queries and documents; `contestants` are the strategies, with those of the engine in `fast`; `measure`
times them; `paper` and `through_spark` are the experiments; `report` and `plot` show them; `run` is the main program.
"""
