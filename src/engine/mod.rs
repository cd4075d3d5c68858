//! Threads around the kernel.

mod owned;
pub mod seam;
