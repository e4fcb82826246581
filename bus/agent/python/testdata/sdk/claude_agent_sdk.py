"""The shapes of the Claude Agent SDK that hooks see."""

from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, List, Optional

HookCallback = Callable[[Dict[str, Any], Optional[str], Any], Awaitable[Dict[str, Any]]]


@dataclass
class HookMatcher:
    matcher: Optional[str] = None
    hooks: List[HookCallback] = field(default_factory=list)
    timeout: Optional[float] = None
