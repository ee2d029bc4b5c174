"""Results as documents for people, and as JSON for programs. No arithmetic."""
