//! Registers an application with the external shuffle service of each agent that it has executors on.
//!
//! Spark's executors can leave their shuffle files to a service that runs on each agent, so that the files outlive
//! them. The service can't know when the application is over; so whoever places executors registers the application
//! with it and sends heartbeats as long as the application lives. When those have stopped for the heartbeat timeout,
//! the service deletes the application's files.
//!
//! [`Registrar`] does that; [`DriverMessage`] is what is said, and [`ShuffleMessage`] and [`FrameReader`] are how it is
//! written. All of it was compared, byte by byte, with what Spark 3.5's own client sends.
//!
//! What Spark's `spark.authenticate` asks for is not there: services that demand it refuse the registration.

mod call;
mod driver;
mod event;
mod frame;
mod host;
mod options;
mod registrar;

pub use driver::DriverMessage;
pub use event::{RegistrationState, ShuffleEvent};
pub use frame::{FRAME_MAX, FrameReader, MalformedFrame, ShuffleMessage};
pub use options::ShuffleOptions;
pub use registrar::{Registrar, Service};
