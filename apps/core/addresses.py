"""Which addresses of a network may be connected to."""

import ipaddress
import socket


class NotAllowed(Exception):
    """There is no such host, or it is in a private network. The message says which."""


def address_of(host: str, port: int, *, allow_private: bool) -> str:
    """The address to connect to. Every one the name has must be allowed. Blocks.

    Whoever connects is to use this very address: a name may change its mind in between.

    Raises:
        NotAllowed
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotAllowed(f"Host {host} not found.") from error
    addresses = [str(entry[4][0]).split("%")[0] for entry in found]
    if not allow_private and not all(map(is_public, addresses)):
        raise NotAllowed(f"{host} is a private address. Only public addresses can be fetched here.")
    return addresses[0]


def is_public(address: str) -> bool:
    """Whether an address belongs to the internet, also when it is written as another kind."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo and parsed.teredo[1])
        if inner:
            return is_public(str(inner))
        if any(parsed in network for network in _WITH_IPV4):
            return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
        return parsed in _IPV6 and parsed.is_global
    return parsed.is_global and not parsed.is_multicast and parsed not in _PROTOCOLS


# Their last 32 bits are an IPv4 address: through NAT64, IPv4-compatible, translated.
_WITH_IPV4 = [ipaddress.ip_network(text) for text in ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")]
# All that was ever given out. What is outside is for one site, one machine or experiments.
_IPV6 = ipaddress.ip_network("2000::/3")
# For protocols; some clouds answer with secrets there. Older Pythons take parts of it for public.
_PROTOCOLS = ipaddress.ip_network("192.0.0.0/24")
