//! Tests of the master: a random world around it, judged after each call, and the cases by name.

mod books;
mod cases;
mod descriptions;
mod random;
mod restarts;
mod workers;
mod world;
