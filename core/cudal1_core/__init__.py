"""Everything the product does without a screen."""
