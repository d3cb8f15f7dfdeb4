"""What a broker counts and says of itself while it runs."""
