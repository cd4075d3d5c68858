"""Offermill as a Python package: the program ``offermill``, and the plug-in with which Spark's drivers use it.

    import offermill
    spark = (SparkSession.builder.master("spark-offermill:local-cluster[2,2,2048]")
             .config("spark.driver.extraClassPath", offermill.spark_jar()).getOrCreate())
"""

import os
import sys
from importlib.metadata import version

__all__ = ["binary", "spark_jar"]
__version__ = version("offermill")

_HERE = os.path.dirname(os.path.abspath(__file__))


def binary():
    """The path of the program, which the plug-in finds by itself."""
    return os.path.join(_HERE, "bin", "offermill")


def spark_jar():
    """The path of the plug-in, for ``spark.driver.extraClassPath`` or ``spark-submit --driver-class-path``."""
    return os.path.join(_HERE, "offermill-spark.jar")


def _run():
    """The program, in the place of this process."""
    os.execv(binary(), ["offermill", *sys.argv[1:]])
