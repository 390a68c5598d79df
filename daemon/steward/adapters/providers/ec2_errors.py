"""The meaning of EC2's refusals for the caller: no capacity, a quota, a passing fault, or nothing that will ever
work."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from steward.adapters.process import show
from steward.ports import Permanent, PortError, Retryable


class Kind(Enum):
    CAPACITY = "capacity"
    QUOTA = "quota"
    NOT_OFFERED = "not offered"
    PASSING = "passing"
    GONE = "gone"
    OTHER = "other"


_KINDS = {
    "ReservationCapacityExceeded": Kind.CAPACITY,
    "SpotMaxPriceTooLow": Kind.CAPACITY,
    "UnfulfillableCapacity": Kind.CAPACITY,
    "MaxSpotInstanceCountExceeded": Kind.QUOTA,
    "Unsupported": Kind.NOT_OFFERED,
    "PendingVerification": Kind.PASSING,
    "RequestLimitExceeded": Kind.PASSING,
    "Throttling": Kind.PASSING,
    "ThrottlingException": Kind.PASSING,
    "InternalError": Kind.PASSING,
    "InternalFailure": Kind.PASSING,
    "Unavailable": Kind.PASSING,
    "ServiceUnavailable": Kind.PASSING,
    "RequestExpired": Kind.PASSING,
    "ExpiredToken": Kind.PASSING,
    "InvalidInstanceID.NotFound": Kind.GONE,
    "InvalidInstanceID.Malformed": Kind.GONE,
    "IncorrectInstanceState": Kind.PASSING,
    "IncorrectState": Kind.PASSING,
}
_FAMILIES = {re.compile(r"Insufficient\w+"): Kind.CAPACITY, re.compile(r"\w+LimitExceeded"): Kind.QUOTA}
"""EC2 has a word for each thing that it may lack (hosts, volumes, addresses) and for each limit of an account; new ones
come. Those that stand in the table above are what that says."""
_REMEDIES = {
    "UnauthorizedOperation": "allow the head's role this action (docs/providers.md has the policy)",
    "AuthFailure": "give the head valid AWS credentials (an instance profile, or ~/.aws of its user)",
    "InvalidClientTokenId": "give the head valid AWS credentials (an instance profile, or ~/.aws of its user)",
    "OptInRequired": "accept the AMI's terms in the AWS Marketplace",
    "InvalidAMIID.NotFound": "correct the group's image or provider.ec2.image",
    "InvalidSubnetID.NotFound": "correct provider.ec2.subnets",
    "InvalidGroup.NotFound": "correct provider.ec2.security_groups",
    "InvalidKeyPair.NotFound": "correct provider.ec2.key_name",
    "InvalidLaunchTemplateId.NotFound": "correct provider.ec2.launch_template",
    "InvalidLaunchTemplateName.NotFoundException": "correct provider.ec2.launch_template",
}
_SERVER_ERROR = 500


class Refused(Exception):
    """EC2 said no. `code` is EC2's own word, the text one line; `is_undone`: for certain nothing has happened."""

    def __init__(self, kind: Kind, code: str, text: str, *, is_undone: bool = False) -> None:
        super().__init__(text)
        self.kind = kind
        self.code = code
        self.is_undone = is_undone

    def as_port_error(self, wish: str) -> PortError:
        """In the words of a ProviderPort: what was tried, what came back, what to do."""
        remedy = f"; {_REMEDIES[self.code]}" if self.code in _REMEDIES else ""
        text = f"ec2: cannot {wish}: {self}{remedy}"
        match self.kind:
            case Kind.CAPACITY | Kind.QUOTA:
                return Retryable(f"{self.kind.value}: {text}")
            case Kind.PASSING:
                return Retryable(text)
            case Kind.NOT_OFFERED | Kind.GONE | Kind.OTHER:
                return Permanent(text)


@contextmanager
def refusals() -> Iterator[None]:
    """The SDK's errors as Refused."""
    try:
        yield
    except ClientError as error:
        raise _refused(error) from error
    except NoCredentialsError as error:
        remedy = "give the head an instance profile, or its user a ~/.aws/credentials"
        raise Refused(Kind.PASSING, "NoCredentials", f"no AWS credentials were found; {remedy}") from error
    except (BotoCoreError, OSError) as error:
        raise Refused(Kind.PASSING, type(error).__name__, show(str(error))) from error


def _refused(error: ClientError) -> Refused:
    code = str(error.response.get("Error", {}).get("Code", "")).removeprefix("Server.").removeprefix("Client.")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = _kind_of(code, status)
    message = error.response.get("Error", {}).get("Message", "")
    return Refused(kind, code, f"{show(code)}: {show(str(message))}", is_undone=status < _SERVER_ERROR)


def _kind_of(code: str, status: int) -> Kind:
    if code in _KINDS:
        return _KINDS[code]
    of_family = next((kind for family, kind in _FAMILIES.items() if family.fullmatch(code)), None)
    return of_family or (Kind.PASSING if status >= _SERVER_ERROR else Kind.OTHER)
