"""The table: many references judged in one go, results that survive a kill, statistics, reports, comparisons."""
