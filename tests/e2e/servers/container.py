"""What every runtime here makes."""
from typing import NamedTuple

from servers import process


class Container(NamedTuple):
    id: str
    name: str
    pid: int

    def kill(self):
        """Its first process, and with that all of it. The runtime notices by itself."""
        process.kill(self.pid)
