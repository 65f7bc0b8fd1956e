"""The parent of the Python workers of a local session: it imports what all workers need once, before they are forked.

Spark starts this module in place of ``pyspark.daemon``. A worker would otherwise import the same modules by itself. The
imported objects are also excluded from the garbage collection that Spark starts after each task.
"""

import gc

from pyspark.daemon import manager

import relocbench.spark.assign
import relocbench.spark.evaluate
import relocbench.spark.factors
import relocbench.spark.topics_from_graph  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
