"""What must hold when anything dies at any moment: a matrix of steps and faults, and long random stories."""
