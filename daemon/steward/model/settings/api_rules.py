"""Rules of the HTTP endpoint: nobody's secrets go over a network in the clear by accident."""

import ipaddress
from collections.abc import Iterator

from steward.model.setting_types import split_host_port
from steward.model.settings.errors import Problem
from steward.model.settings.root import Settings


def tls_pair(settings: Settings) -> Iterator[Problem]:
    api = settings.api
    if api.tls_certificate is not None and api.tls_key is None:
        yield Problem.of("api.tls_certificate", str(api.tls_certificate), "it together with api.tls_key")
    if api.tls_key is not None and api.tls_certificate is None:
        yield Problem.of("api.tls_key", str(api.tls_key), "it together with api.tls_certificate")


def plain_http(settings: Settings) -> Iterator[Problem]:
    api, http = settings.api, settings.head.http
    if api.tls_certificate is None and not api.allow_plain_http and not _is_loopback(split_host_port(http)[0]):
        remedy = "127.0.0.1 as its host, or set api.tls_certificate and api.tls_key (or api.allow_plain_http = true)"
        yield Problem.of("head.http", http, remedy)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
