"""The runner of lifecycle scripts: a program of its own, so that an agent that dies or restarts does not end them."""
