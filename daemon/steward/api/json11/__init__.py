"""AWS JSON 1.1 as botocore's model of SageMaker defines it: reads requests, renders answers and errors."""
