"""`[[notify]]`: the channels for notifications about events."""

from pydantic import Field, SecretStr

from steward.model.events import Level
from steward.model.notify import ChannelKind, ChannelRule
from steward.model.section import Section
from steward.model.setting_types import FullPath, HostPort, Program, Words


class NotifySettings(Section):
    """One channel: its events and its target. Events with one cause become one message within `window_s`."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,30}$", examples=["on-call"], description="Name of the channel in logs."
    )
    kind: ChannelKind = Field(description="How messages are sent.")
    levels: tuple[Level, ...] = Field(
        default=(Level.WARNING, Level.ERROR), strict=False, description="Levels of events: info, warning, error."
    )
    kinds: Words = Field(default=(), description="Beginnings of event kinds (`case.`, `node.fault`); empty: all.")
    groups: Words = Field(default=(), description="Only events about nodes of these groups; empty: all.")
    window_s: float = Field(
        default=300.0, ge=0, le=86400, description="Repeated events within this time are one message."
    )
    timeout_s: float = Field(default=10.0, ge=0.1, le=300, description="How long one try may take.")
    url: SecretStr | None = Field(default=None, description="URL of a webhook; never shown.")
    url_file: FullPath | None = Field(default=None, description="A file with the URL, readable by SlurmUser only.")
    secret: SecretStr | None = Field(default=None, description="`$secret` in a template; PagerDuty's routing key.")
    secret_file: FullPath | None = Field(default=None, description="A file with the secret.")
    template: str = Field(
        default="json",
        max_length=8000,
        description="`json`, `slack`, `pagerduty`, or your own JSON with `$title`, `$text` ...",
    )
    to: Words = Field(default=(), description="Addresses of a mail.")
    sender: str = Field(
        default="steward",
        pattern=r"^[^\s<>]{1,200}$",
        examples=["steward@example.org"],
        description="Sender of a mail.",
    )
    smtp: HostPort = Field(default="localhost:25", description="Mail server without TLS and login.")
    command: Program | None = Field(default=None, description="argv; the message is JSON on its standard input.")

    def rule(self) -> ChannelRule:
        """Return the channel's choice and rate of messages."""
        return ChannelRule(
            name=self.name,
            levels=frozenset(self.levels),
            kinds=self.kinds,
            groups=frozenset(self.groups),
            window_s=self.window_s,
        )
