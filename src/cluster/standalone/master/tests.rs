//! Tests of the master: a random world around it, judged after each call, and the cases by name.

mod books;
mod cases;
mod descriptions;
mod hosts;
mod random;
mod restarts;
mod task_infos;
mod workers;
mod world;
