"""Read requests, shape answers and report errors in AWS JSON 1.1, by botocore's own model of SageMaker."""
