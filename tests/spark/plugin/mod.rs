//! Applications of Spark 3.5 and 4 whose drivers get executors from the plug-in.

mod application;
mod ends;
mod jobs;
mod places;
mod recorder;
mod refusals;
mod shells;
mod standalone;

/// The releases of Spark: one with Scala 2.12, and the first and the latest line with 2.13.
const SPARK_3: &str = "3.5.9";
const SPARK_4_0: &str = "4.0.5";
const SPARK_4: &str = "4.3.0";
