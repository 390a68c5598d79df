"""Deep checks: whom they take, what their measures say, what follows."""
