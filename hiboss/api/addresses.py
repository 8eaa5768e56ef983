"""Addresses in requests: `agent:nex`, or a bare name like `nex`, unique over agents, people and groups."""

from __future__ import annotations

from ..core.address import Address, is_name, parse_address
from ..core.errors import BossOnly, NotFound, UnknownAddress
from ..store import addresses
from ..store.connection import Connection
from ..store.store import Store
from .auth import Caller


def resolve(store: Store, caller: Caller, text: str, unknown: type[NotFound] = UnknownAddress) -> Address:
    """Return the address that `text` means; raises `unknown` for a bare name that nobody has or had.

    So it does if the caller may not know that there is somebody with this name.
    """
    if ":" in text or not is_name(text):
        return parse_address(text)
    found = store.read(lambda connection: addresses.find_name(connection, text))
    if found is None or _is_hidden(store, caller, found):
        raise unknown(address=text, hint=store.read(lambda c: addresses.near_name(c, text)))
    return found


def address_id(store: Store, caller: Caller, text: str) -> int:
    """Return the id of an address, also of a deleted one; raises UnknownAddress, also if it is hidden."""
    address = resolve(store, caller, text)
    found = store.read(lambda connection: addresses.find_address(connection, address))
    if found is None or _is_hidden(store, caller, address):
        raise _unknown(store, address)
    return found


def every_id(store: Store, caller: Caller, text: str) -> tuple[int, ...]:
    """Return the ids of all who have or had this address; raises UnknownAddress, also if it is hidden."""
    address = resolve(store, caller, text)
    found = store.read(lambda connection: addresses.namesakes(connection, address))
    if not found or _is_hidden(store, caller, address):
        raise _unknown(store, address)
    return found


def _is_hidden(store: Store, caller: Caller, address: Address) -> bool:
    """Tell whether an address that there is or was is none for the caller: the one rule for all requests."""
    if caller.is_boss or address.kind in ("agent", "user"):
        return False

    def read(connection: Connection) -> bool:
        found = addresses.namesakes(connection, address)
        return not any(addresses.is_known(connection, one, caller.sees) for one in found)

    return store.read(read)


def acting_for(store: Store, caller: Caller, named: str | None) -> int:
    """Return whose box a request is about: the caller's own, or for the boss the one named."""
    if named is None:
        return caller.id
    if caller.is_boss:
        return address_id(store, caller, named)
    if resolve(store, caller, named).fold == (caller.address.fold if caller.address else None):
        return caller.id
    raise BossOnly(what="acting for another's box (address)", caller=caller.name)


def _unknown(store: Store, address: Address) -> UnknownAddress:
    hint = store.read(lambda connection: addresses.near_address(connection, address))
    return UnknownAddress(address=str(address), hint=hint)
