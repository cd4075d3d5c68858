//! Client of Spark's external shuffle service: registers an application on each host that runs its executors.
//!
//! Spark's executors can leave their shuffle files to a service that runs on each agent, so that the files outlive
//! them. The service can't know when the application ends. Therefore the program that places the executors registers
//! the application with the service and sends heartbeats while the application lives. If no heartbeat arrives for the
//! heartbeat timeout, the service deletes the application's files.
//!
//! [`Registrar`] registers and sends heartbeats. [`DriverMessage`] holds the content of the messages;
//! [`ShuffleMessage`] and [`FrameReader`] encode and decode them. All messages were compared, byte by byte, with those
//! that Spark 3.5's own client sends.
//!
//! Authentication (`spark.authenticate`) is not supported: services that require it refuse the registration.

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
