"""`fishweir bench mmqjp`: value joins between documents, after section 6 of MMQJP.

`work` generates queries and documents; `engines` runs MMQJP's statements on DuckDB; `contestants` are the strategies;
`paper` and `rss` are the experiments; `report` and `plot` show them; `run` is the main program.
"""
