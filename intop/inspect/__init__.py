"""Views of campaigns: their progress, their results, and dry runs."""
