"""Where the workbench finds its settings."""

from __future__ import annotations

from pathlib import Path

from cudal1_core.config import PROJECT_FILE, Settings, load

from cudal1_tui.actions import IDS


def settings_files() -> tuple[Path, Path]:
    """The person's and the project's."""
    from platformdirs import user_config_path

    return user_config_path("cudal1-tui") / "config.toml", Path.cwd() / PROJECT_FILE


def user_settings() -> tuple[Settings, list[str]]:
    """The settings in force, and a sentence for each mistake in a file."""
    settings, problems = load(settings_files(), IDS)
    return settings, [str(problem) for problem in problems]
