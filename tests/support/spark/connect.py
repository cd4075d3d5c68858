"""A client of Spark Connect: SQL, a shuffle and a function in Python, with known answers. Says RESULT."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf

NUMBERS = 20_000

spark = SparkSession.builder.remote(f"sc://127.0.0.1:{sys.argv[1]}").getOrCreate()
numbers = spark.range(0, NUMBERS, 1, 4)
double = udf(lambda number: 2 * number, "long")
found = (
    numbers.count(),
    sorted(tuple(row) for row in numbers.groupBy((col("id") % 10).alias("group")).count().collect()),
    numbers.select(double("id").alias("twice")).agg({"twice": "sum"}).collect()[0][0],
)
wanted = (NUMBERS, [(group, NUMBERS // 10) for group in range(10)], NUMBERS * (NUMBERS - 1))
print("RESULT " + ("ok\n" if found == wanted else f"wrong: {found}\n"), end="")
spark.stop()
sys.exit(found != wanted)
