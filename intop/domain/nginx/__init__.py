"""nginx as the second thing that is tuned: its files, its directives, and how both meet a space."""
