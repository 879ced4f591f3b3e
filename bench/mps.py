"""An MPS control daemon of our own, in directories of our own: another's is not touched."""
import contextlib
import os
import subprocess
import tempfile


@contextlib.contextmanager
def server():
    """The environment of its clients. The control daemon starts a server when the first of them comes."""
    with tempfile.TemporaryDirectory(prefix="wattribute-mps-") as scratch:
        environment = {"CUDA_MPS_PIPE_DIRECTORY": f"{scratch}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{scratch}/log"}
        for directory in environment.values():
            os.mkdir(directory)
        everything = {**os.environ, **environment}
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=everything, check=True)
        try:
            yield environment
        finally:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=everything, check=False)
