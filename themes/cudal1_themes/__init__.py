"""Colour themes as TOML files, and their loader."""

from cudal1_themes.loader import ThemeFile, ThemeProblem, bundled_folder, load_folder, load_theme

__all__ = ["ThemeFile", "ThemeProblem", "bundled_folder", "load_folder", "load_theme"]
