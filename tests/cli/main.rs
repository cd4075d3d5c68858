//! The command line from outside: the real binary, real processes, and what its user sees of them.
//!
//! | module | question |
//! |---|---|
//! | [`running`] | do executors run, fail and get replaced as they should? |
//! | [`ending`] | does it end in time, with the right code, and leave nothing behind? |
//! | [`journaling`] | can a run be done again from its journal, and does a journal keep secrets? |
//! | [`output`] | can machines read what it says, and does it bear a reader that goes away? |
//! | [`unread`] | does it go on, and end as it should, while nobody reads what it says? |
//! | [`settings`] | which setting counts, and is a bad one refused in a sentence? |
//! | [`controlling`] | does it do what it is told while it goes on, and bear who tells it? |
//! | [`spark`] | are settings those of Spark, and are they shown with their origins? |
//! | [`spark_executors`] | are Spark's executors started as by Spark itself? |
//! | [`mesos`] | is a run on Mesos set up as its user says, and does it keep secrets? |
//! | [`checking`] | does it say what a constraint says, and of which agents? |
//! | [`replaying`] | is decided again what was decided, and as Spark did if so asked? |
//! | [`deviations`] | is Spark's nonsense left out, and the right thing done in its place? |
//! | [`simulating`] | does a simulation tell, write and refuse what it should? |

#![allow(clippy::unwrap_used, clippy::panic)]

mod checking;
mod controlling;
mod deviations;
mod ending;
mod journaling;
mod mesos;
mod output;
mod replaying;
mod running;
mod settings;
mod simulating;
mod spark;
mod spark_executors;
mod support;
mod unread;
