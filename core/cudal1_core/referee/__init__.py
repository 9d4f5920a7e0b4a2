"""The referee: judges a candidate against its reference in processes it can trust."""
