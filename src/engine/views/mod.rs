//! What parts of the engine hold, for a simulation that checks them.

pub(crate) mod ledger_view;
pub(crate) mod work_view;
