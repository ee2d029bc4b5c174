"""Results as text, for people and for machines. No arithmetic."""
