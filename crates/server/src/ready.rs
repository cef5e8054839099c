//! The end of what a client has asked for together: it is committed, and the next may come.
use sql::TransactionStatus;

use crate::connection::{Answer, Connection};
use crate::wire::output::Readiness;

impl Connection<'_> {
    /// Ends what came together: commits it, closes its portals, and says so.
    pub(crate) fn sync(&mut self) -> Answer {
        let ended = self.session.end_implicit();
        if let Err(error) = ended {
            self.tell(&error, None)?;
        }
        self.skips = false;
        self.ready()
    }

    /// Says that the next statement may come.
    pub(crate) fn ready(&mut self) -> Answer {
        let readiness = match self.session.transaction_status() {
            TransactionStatus::Idle => Readiness::Idle,
            TransactionStatus::InBlock => Readiness::InBlock,
            TransactionStatus::Failed => Readiness::Failed,
        };
        if readiness != Readiness::InBlock {
            self.portals.close_all();
        }
        if readiness == Readiness::Idle && self.session.has_listened() {
            self.session.mailbox().take().iter().for_each(|word| self.output.notification(word));
        }
        if self.told_turn != self.session.settings_turn() {
            self.tell_settings();
        }
        self.output.ready(readiness);
        Ok(self.output.flush()?)
    }

    /// Tells the settings that have changed.
    fn tell_settings(&mut self) {
        self.told_turn = self.session.settings_turn();
        for (name, told) in &mut self.told {
            let value = self.session.setting(&name.to_ascii_lowercase()).unwrap_or_default();
            if value != *told {
                self.output.parameter_status(name, &value);
                *told = value;
            }
        }
    }
}
