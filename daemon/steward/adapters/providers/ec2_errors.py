"""The meaning of EC2's refusals for the caller: no capacity, a quota, a passing fault, or a permanent one."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from steward.adapters.process import show
from steward.model.text import cause_and_file
from steward.ports import Permanent, PortError, Retryable


class Ec2RefusalKind(Enum):
    """The kind of a refusal of EC2."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    NOT_OFFERED = "not offered"
    PASSING = "passing"
    GONE = "gone"
    OTHER = "other"


_KINDS = {
    "ReservationCapacityExceeded": Ec2RefusalKind.CAPACITY,
    "SpotMaxPriceTooLow": Ec2RefusalKind.CAPACITY,
    "UnfulfillableCapacity": Ec2RefusalKind.CAPACITY,
    "MaxSpotInstanceCountExceeded": Ec2RefusalKind.QUOTA,
    "Unsupported": Ec2RefusalKind.NOT_OFFERED,
    "PendingVerification": Ec2RefusalKind.PASSING,
    "RequestLimitExceeded": Ec2RefusalKind.PASSING,
    "Throttling": Ec2RefusalKind.PASSING,
    "ThrottlingException": Ec2RefusalKind.PASSING,
    "InternalError": Ec2RefusalKind.PASSING,
    "InternalFailure": Ec2RefusalKind.PASSING,
    "Unavailable": Ec2RefusalKind.PASSING,
    "ServiceUnavailable": Ec2RefusalKind.PASSING,
    "RequestExpired": Ec2RefusalKind.PASSING,
    "ExpiredToken": Ec2RefusalKind.PASSING,
    "InvalidInstanceID.NotFound": Ec2RefusalKind.GONE,
    "InvalidInstanceID.Malformed": Ec2RefusalKind.GONE,
    "IncorrectInstanceState": Ec2RefusalKind.PASSING,
    "IncorrectState": Ec2RefusalKind.PASSING,
}
_FAMILIES = {
    re.compile(r"Insufficient\w+"): Ec2RefusalKind.CAPACITY,
    re.compile(r"\w+LimitExceeded"): Ec2RefusalKind.QUOTA,
}
"""Codes of whole families: EC2 has one for each resource that it may lack (hosts, volumes, addresses) and for each
limit of an account, and adds new ones. The table above goes first."""
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


class Ec2Refusal(Exception):
    """A request that EC2 refused. `code` is EC2's code, the text one line. `is_undone`: it certainly had no effect."""

    def __init__(self, kind: Ec2RefusalKind, code: str, text: str, *, is_undone: bool = False) -> None:
        super().__init__(text)
        self.kind = kind
        self.code = code
        self.is_undone = is_undone

    def as_port_error(self, wish: str) -> PortError:
        """Return the error of a ProviderPort: what was tried, what came back, what to do."""
        remedy = f"; {_REMEDIES[self.code]}" if self.code in _REMEDIES else ""
        text = f"ec2: cannot {wish}: {self}{remedy}"
        match self.kind:
            case Ec2RefusalKind.CAPACITY | Ec2RefusalKind.QUOTA:
                return Retryable(f"{self.kind.value}: {text}")
            case Ec2RefusalKind.PASSING:
                return Retryable(text)
            case Ec2RefusalKind.NOT_OFFERED | Ec2RefusalKind.GONE | Ec2RefusalKind.OTHER:
                return Permanent(text)


@contextmanager
def refusals() -> Iterator[None]:
    """Translate the SDK's errors into Ec2Refusal."""
    try:
        yield
    except ClientError as error:
        raise _refused(error) from error
    except NoCredentialsError as error:
        remedy = "give the head an instance profile, or its user a ~/.aws/credentials"
        raise Ec2Refusal(Ec2RefusalKind.PASSING, "NoCredentials", f"no AWS credentials were found; {remedy}") from error
    except (BotoCoreError, OSError) as error:
        raise Ec2Refusal(Ec2RefusalKind.PASSING, type(error).__name__, show(cause_and_file(error))) from error


def _refused(error: ClientError) -> Ec2Refusal:
    code = str(error.response.get("Error", {}).get("Code", "")).removeprefix("Server.").removeprefix("Client.")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = _kind_of(code, status)
    message = error.response.get("Error", {}).get("Message", "")
    return Ec2Refusal(kind, code, f"{show(code)}: {show(str(message))}", is_undone=status < _SERVER_ERROR)


def _kind_of(code: str, status: int) -> Ec2RefusalKind:
    if code in _KINDS:
        return _KINDS[code]
    of_family = next((kind for family, kind in _FAMILIES.items() if family.fullmatch(code)), None)
    return of_family or (Ec2RefusalKind.PASSING if status >= _SERVER_ERROR else Ec2RefusalKind.OTHER)
