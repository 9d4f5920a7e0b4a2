"""Suites, tables and reports over many references."""
