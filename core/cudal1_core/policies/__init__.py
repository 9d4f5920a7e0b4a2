"""What writes candidates: one file a policy, one protocol."""
