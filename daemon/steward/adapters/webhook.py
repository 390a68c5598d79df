"""Messages by HTTP POST. The URL is a secret: neither it nor an error that quotes it is ever shown."""

from dataclasses import dataclass, field

import requests

from steward.model.notify import Message
from steward.ports import Permanent, Retryable
from steward.views.notify import body, message_id

_PASSING = (408, 425, 429)
_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A sender of messages to a URL; see `body` for `template` and `secret`."""

    url: str = field(repr=False)
    cluster: str
    template: str = "json"
    secret: str = field(default="", repr=False)
    timeout_s: float = 10.0

    def send(self, message: Message) -> None:
        """Post the message. Raises Retryable if it may not have arrived, Permanent if the receiver refuses it."""
        text = body(self.template, message, self.cluster, self.secret)
        headers = {"Content-Type": _TYPE, "Idempotency-Key": message_id(message, self.cluster)}
        try:
            with requests.Session() as session:
                answer = session.post(
                    self.url,
                    data=text.encode(),
                    headers=headers,
                    timeout=self.timeout_s,
                    allow_redirects=False,
                    stream=True,
                )
                status = answer.status_code
        except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema):
            raise Permanent("its URL is not valid: write https://HOST/PATH") from None
        except requests.exceptions.Timeout:
            raise Retryable(f"no answer within {self.timeout_s:g} s") from None
        except requests.exceptions.SSLError:
            raise Retryable("the receiver's certificate is not trusted here") from None
        except (requests.exceptions.RequestException, OSError) as error:
            raise Retryable(f"no connection ({type(error).__name__})") from None
        _check_status(status)


def _check_status(status: int) -> None:
    if status >= 500 or status in _PASSING:
        raise Retryable(f"the receiver answered {status}")
    if not 200 <= status < 300:
        raise Permanent(f"the receiver answered {status}")
