"""A local Ray cluster of two workers, one of which is killed: `python -m testing.ray_cluster SHARDS`.

Writes the cluster's address on the first line. When the first file stands in SHARDS, one worker is killed without warning,
and the second line says so. The cluster ends with standard input.
"""

import importlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

MEMORY = 100_000_000


def main(shards: Path) -> None:
    """Until standard input ends."""
    os.environ["RAY_worker_niceness"] = (  # noqa: SIM112 - Ray's own name
        "0"  # as the others here: by default a worker yields to every other process
    )
    utils: Any = importlib.import_module("ray.cluster_utils")  # the extra `cluster`
    cluster = utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY}
    )
    workers = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
    cluster.wait_for_nodes()
    sys.stdout.write(f"{cluster.address}\n")
    sys.stdout.flush()

    def kill_one() -> None:
        while not list(shards.glob("*.parquet")):
            time.sleep(0.05)
        cluster.remove_node(workers[0], allow_graceful=False)
        sys.stdout.write("killed\n")
        sys.stdout.flush()

    threading.Thread(target=kill_one, daemon=True).start()
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
