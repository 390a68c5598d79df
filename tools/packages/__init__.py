"""What a site installs: deb and rpm files, a wheel and a source archive."""
