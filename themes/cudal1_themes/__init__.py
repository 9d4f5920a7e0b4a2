"""Colour themes as TOML files, and their loader."""
