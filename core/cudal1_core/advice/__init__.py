"""Advice on a candidate, read from its source. It is shown and stored; no verdict and no reward ever depends on it.

A reader of source can be fooled: by text split in two, by comments that tell it what to think, by a trick it has not
seen. So what decides is what the referee measures, and this package neither imports the referee nor is imported by it.
"""
