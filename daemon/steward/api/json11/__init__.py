"""AWS JSON 1.1 as botocore's own model of SageMaker describes it: requests read, answers shaped, errors told."""
