"""The kit of commands: options, output, and what opens a study for them."""
