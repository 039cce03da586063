"""What several tests share: strategies, naive models, and a small world of registrations to play with."""
