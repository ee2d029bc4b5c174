"""Names of the user's OpenSSH configuration, by the real ssh."""

from pathlib import Path

from intop.hosts.ssh.aliases import by_alias

CONFIG = """\
Host *.example !no
  User web
host=front web1
  HostName 192.0.2.31
Host web2 web1
  HostName 192.0.2.32
Match host web3
  HostName 192.0.2.33
"""


def test_an_address_has_the_first_name_that_leads_there(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(CONFIG)
    addresses = ("192.0.2.31", "192.0.2.32", "192.0.2.33", "10.0.0.1")
    assert by_alias(addresses, config) == ("front", "web2", "192.0.2.33", "10.0.0.1")


def test_without_a_configuration_addresses_stay(tmp_path: Path) -> None:
    assert by_alias(("192.0.2.31",), tmp_path / "none") == ("192.0.2.31",)
    (tmp_path / "strange").write_bytes(b"Host \xff\n")
    assert by_alias(("192.0.2.31",), tmp_path / "strange") == ("192.0.2.31",)
