"""The runner of lifecycle scripts: a program of its own, so that scripts outlive the agent that started them."""
