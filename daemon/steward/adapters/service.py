"""Without a service manager: nobody to notify."""


class NoNotifier:
    """Every method does nothing."""

    def ready(self) -> None:
        return

    def alive(self, status: str) -> None:
        return

    def stopping(self) -> None:
        return
