"""Jobs that asked to be resumed: their shims' questions, failures, rulings and requeues, and nodes kept for them."""
