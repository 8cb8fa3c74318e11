"""What tests need to drive real servers and whole programs."""
