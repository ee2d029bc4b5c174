import subprocess
import sys


def test_one_thread_limits_libraries_that_are_not_loaded_yet() -> None:
    script = (
        "from intop.learn.parallel import one_thread\n"
        "with one_thread():\n"
        "    import sklearn.neural_network, threadpoolctl\n"
        "    print({pool['num_threads'] for pool in threadpoolctl.threadpool_info()})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("{1}", "")
