"""Made-up objects that several tests need."""
