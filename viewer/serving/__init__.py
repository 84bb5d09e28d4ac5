"""How the viewer is served: the sockets that it listens on, and what bounds a connection."""
