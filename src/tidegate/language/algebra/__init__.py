"""How filters relate: normal forms, value sets, covering, estimates of filters that move."""
