"""The child of the transformers policy: loads a model and writes several streams at once."""
