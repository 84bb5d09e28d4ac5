"""Real servers, private to the tests that start them."""
