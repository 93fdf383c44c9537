"""`fishweir bench spatialjoin`: selections and window joins as query regions, after section 7 of Spatial Join CQ.

`work` generates queries and tuples; `contestants` are Fishweir's strategies, `outsiders`, `scan` and `nested_loop`
those of other systems; `measure` times them; `paper`, `joins` (figure 18) and `contest` are the experiments; `report`,
`plot` and `plot_joins` show them; `run` is the main program.
"""
