//! Applications of Spark 3.5 and 4 whose drivers get executors from the plug-in.

mod application;
mod ends;
mod jobs;
mod places;
mod refusals;
mod shells;

/// The releases of Spark, each with a Scala of its own.
const SPARK_3: &str = "3.5.9";
const SPARK_4: &str = "4.3.0";
