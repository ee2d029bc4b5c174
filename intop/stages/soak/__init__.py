"""soak: hours of constant load on what is applied."""
