"""`fishweir bench roses`: filter factorization and keyword filters over feed items, after section 6 of RoSeS.

`work` generates items and filters; `plans` compares STA, VCA and VCB (figures 7 and 8); `contestants` and `matching`
compare ways to match; `report` shows tables, targets and the picture; `run` is the main program.
"""
