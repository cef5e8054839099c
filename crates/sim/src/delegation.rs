//! Delegation: a server thread does what its clients ask for, so that what it works on stays in its caches
//! (tle-multisocket, section 4).
//!
//! ```text
//! for each server and client a line:   | request | answer |      0: none
//! for each server a line:              | clients that have ended |
//! client:  writes its request, and waits until that word is 0          server:  looks at all its lines in turn
//! ```

use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;

/// The lines over which clients and servers talk.
#[derive(Debug, Clone, Copy)]
pub struct Mailboxes {
    first: Address,
    clients: u64,
}

impl Mailboxes {
    /// How many words they take.
    pub const fn words(servers: u64, clients: u64) -> u64 {
        servers * (clients + 1) * LINE_WORDS
    }

    /// Those at an address, all words 0.
    pub fn at(first: Address, clients: u64) -> Self {
        Mailboxes { first, clients }
    }

    fn line(&self, server: u64, client: u64) -> Address {
        self.first + (server * (self.clients + 1) + client) * LINE_WORDS
    }

    /// Has a server do something, and waits for its answer. A request is not 0.
    ///
    /// # Errors
    /// As the memory: none outside of transactions. So for all below.
    pub async fn ask<M: Memory>(&self, memory: &M, server: u64, client: u64, request: u64) -> Result<u64, Aborted> {
        debug_assert_ne!(request, 0, "0 is no request");
        let line = self.line(server, client);
        memory.store(line, request).await?;
        memory.wait_while(line, request).await?;
        memory.load(line + 1).await
    }

    /// A client asks no more.
    ///
    /// # Errors
    /// None outside of transactions.
    pub async fn end<M: Memory>(&self, memory: &M, servers: u64) -> Result<(), Aborted> {
        for server in 0..servers {
            memory.fetch_add(self.line(server, self.clients), 1).await?;
        }
        Ok(())
    }

    /// Serves until all clients have ended.
    ///
    /// # Errors
    /// None outside of transactions.
    pub async fn serve<M: Memory>(
        &self,
        memory: &M,
        server: u64,
        answer: impl AsyncFn(u64) -> Result<u64, Aborted>,
    ) -> Result<(), Aborted> {
        while memory.load(self.line(server, self.clients)).await? < self.clients {
            for client in 0..self.clients {
                let line = self.line(server, client);
                let request = memory.load(line).await?;
                if request != 0 {
                    let found = answer(request).await?;
                    memory.store(line + 1, found).await?;
                    memory.store(line, 0).await?;
                }
            }
        }
        Ok(())
    }
}
