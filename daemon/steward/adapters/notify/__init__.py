"""Messages to people: by mail, by a webhook, by a program of the site's."""
