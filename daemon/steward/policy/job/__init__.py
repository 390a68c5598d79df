"""Jobs that asked to be resumed: questions, failures, rulings, and what is kept for them."""
