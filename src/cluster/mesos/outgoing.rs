//! Where calls are put that are to be sent: the doors of the lanes.

use tokio::sync::mpsc;

use super::lane::{ORDERS_MAX, Order, What};
use super::wire::messages::Call;

/// The doors of both lanes.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    /// Everything whose order matters.
    main: mpsc::Sender<Order>,
    acknowledgements: mpsc::Sender<Order>,
}

/// The other ends.
pub(super) struct Inboxes {
    pub(super) main: mpsc::Receiver<Order>,
    pub(super) acknowledgements: mpsc::Receiver<Order>,
}

/// So many calls wait already that there is no room for another.
#[derive(Debug)]
pub(super) struct Full;

impl Outgoing {
    pub(super) fn new() -> (Outgoing, Inboxes) {
        let (main, main_inbox) = mpsc::channel(ORDERS_MAX);
        let (acknowledgements, inbox) = mpsc::channel(ORDERS_MAX);
        let inboxes = Inboxes { main: main_inbox, acknowledgements: inbox };
        (Outgoing { main, acknowledgements }, inboxes)
    }

    /// Orders something whose place among the others matters.
    pub(super) fn order(&self, epoch: u64, what: What) -> Result<(), Full> {
        self.main.try_send(Order { epoch, what }).map_err(|_| Full)
    }

    /// Orders an acknowledgement.
    pub(super) fn acknowledge(&self, epoch: u64, call: Call) -> Result<(), Full> {
        let what = What::Plain(Box::new(call));
        self.acknowledgements.try_send(Order { epoch, what }).map_err(|_| Full)
    }
}
