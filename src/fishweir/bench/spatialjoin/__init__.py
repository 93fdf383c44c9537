"""`fishweir bench spatialjoin`: selections over tuples as query regions, after section 7 of Spatial Join CQ.

`work` makes queries and tuples; `contestants` are Fishweir's strategies, `outsiders`, `scan` and `nested_loop` what
others have; `measure` times them; `paper` and `contest` are the experiments; `report` and `plot` show them; `run` is
the whole.
"""
