"""AWS JSON 1.1 by botocore's own model of SageMaker: reads requests, shapes answers, reports errors."""
