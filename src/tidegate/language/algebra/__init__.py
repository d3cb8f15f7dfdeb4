"""The algebra of filters: value sets, normal forms, covering, estimates of evolving filters."""
