"""What the demo knows by itself about machines: topics, limits and sentences, with no model in it."""
