"""tools/test-in-root: what runs in its root can do what the tests need."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys

import harness
from harness import SOURCE_ROOT, TestCase
from servers import require

sys.dont_write_bytecode = True  # beside the tool


def load_tool():
    loader = importlib.machinery.SourceFileLoader("test_in_root", os.path.join(SOURCE_ROOT, "tools", "test-in-root"))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(tool)
    return tool


class Root(TestCase):
    def test_a_test_in_it_can_have_mounts_of_its_own(self):
        require.root()
        root = self.path("root")
        for name in ("proc", "dev", "sys", "usr"):
            os.makedirs(os.path.join(root, name))
        for name in ("bin", "lib", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(root, name))
        command = load_tool().enter(root, "unshare --mount --propagation private "
                                          "sh -c 'mount -t tmpfs none /sys && ls /sys && echo done'")
        done = subprocess.run(["unshare", "--mount", "--", "sh", "-c", 'mount --bind /usr "$0/usr" && exec "$@"', root,
                               *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual((0, "done\n", ""), (done.returncode, done.stdout, done.stderr))


if __name__ == "__main__":
    harness.main()
