"""Deep checks: the nodes that they take, the judgement of their measures, and the consequences."""
