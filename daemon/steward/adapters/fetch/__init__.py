"""The fetching of lifecycle scripts from their source. No file leaves the target folder or exceeds the budget."""
