"""How good the diagnosis is: machines with known faults, made from a seed, and the app asked what is wrong."""
