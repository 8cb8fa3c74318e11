from typing import NamedTuple

class KazooState(str):
    SUSPENDED: KazooState
    CONNECTED: KazooState
    LOST: KazooState

class KeeperState(str):
    AUTH_FAILED: KeeperState
    CONNECTED: KeeperState
    CONNECTING: KeeperState
    CLOSED: KeeperState
    EXPIRED_SESSION: KeeperState

class EventType(str):
    NONE: EventType

class WatchedEvent(NamedTuple):
    type: EventType
    state: KeeperState
    path: str | None

class ZnodeStat(NamedTuple):
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeralOwner: int
    dataLength: int
    numChildren: int
    pzxid: int
