"""Lists of runs and sessions, what they add up to, and the form that narrows them."""
