"""Addresses in requests: `agent:nex`, or a bare name like `nex`, unique over agents, people and groups."""

from __future__ import annotations

from ..core.address import Address, is_name, parse_address
from ..core.errors import BossOnly, NotFound, UnknownAddress
from ..store import addresses
from ..store.store import Store
from .auth import Caller


def resolve(store: Store, text: str, unknown: type[NotFound] = UnknownAddress) -> Address:
    """Return the address that `text` means; raises `unknown` for a bare name that nobody has or had."""
    if ":" in text or not is_name(text):
        return parse_address(text)
    found = store.read(lambda connection: addresses.find_name(connection, text))
    if found is None:
        raise unknown(address=text, hint=store.read(lambda c: addresses.near_name(c, text)))
    return found


def address_id(store: Store, text: str) -> int:
    """Return the id of an address, also of a deleted one; raises UnknownAddress."""
    address = resolve(store, text)
    found = store.read(lambda connection: addresses.find_address(connection, address))
    if found is None:
        raise _unknown(store, address)
    return found


def every_id(store: Store, text: str) -> tuple[int, ...]:
    """Return the ids of everybody who has or had this address; raises UnknownAddress."""
    address = resolve(store, text)
    found = store.read(lambda connection: addresses.namesakes(connection, address))
    if not found:
        raise _unknown(store, address)
    return found


def acting_for(store: Store, caller: Caller, named: str | None) -> int:
    """Return whose box a request is about: the caller's own, or for the boss the one named."""
    if named is None:
        return caller.id
    if caller.is_boss:
        return address_id(store, named)
    if resolve(store, named).fold == (caller.address.fold if caller.address else None):
        return caller.id
    raise BossOnly(what="acting for another's box (address)", caller=caller.name)


def _unknown(store: Store, address: Address) -> UnknownAddress:
    hint = store.read(lambda connection: addresses.near_address(connection, address))
    return UnknownAddress(address=str(address), hint=hint)
