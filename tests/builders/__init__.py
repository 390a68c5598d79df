"""Pictures of the world, said in the words of the tests."""
