"""What is seen of campaigns: how far they are, what they found, and what they would do."""
