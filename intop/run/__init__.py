"""What a stage is, and how any of them is carried out."""
