"""What the servers have in common."""
from servers import cgroups, require
from servers.stage import Stage


class Server:
    """For a with statement."""

    programs = ()

    def __enter__(self):
        self.require()
        self.stage = Stage()
        try:
            self.set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stage.close()

    def require(self):
        """Skips or fails the test where this server cannot run."""
        self.program = {name: require.command(name) for name in self.programs}
        require.root()
        require.writable(cgroups.hierarchies())

    def set_up(self):
        raise NotImplementedError
