"""The workbench and the questions it asks."""
