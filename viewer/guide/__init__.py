"""Made-up data for the style guide, in which every component stands in every state; nothing here is of any run."""
