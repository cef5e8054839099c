//! Addresses of hosts and networks, as PostgreSQL's types `inet` and `cidr` have them.
//!
//! ```text
//! 192.168.1.5/24      the network 192.168.1, and within it the host 5: an inet
//! 192.168.1.0/24      the network alone: an inet or a cidr
//! ```
//!
//! An address is kept in bytes in PostgreSQL's order: the family first, then the network, the shorter of two that begin alike first,
//! then the host. A `cidr` has no host.
//!
//! ```text
//! family 4 or 6 | bits of the network, zeros behind them: 16 bytes | how many bits these are | bits of the host: 16 bytes
//! ```
mod operators;
#[cfg(test)]
mod tests;
mod text;

use serde::{Deserialize, Serialize};

pub use operators::NetworkFault;
pub use text::NetworkTextFault;

/// The most bytes that an address is kept in.
pub const NETWORK_BYTES_MAX: usize = 34;

/// Bytes of an address of either family, as they are kept.
const ADDRESS: usize = 16;

/// The types of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum NetworkKind {
    /// `inet`
    Inet,
    /// `cidr`
    Cidr,
}

/// The families of addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// Version 4, of 32 bits.
    V4,
    /// Version 6, of 128 bits.
    V6,
}

/// An address and how many of its bits, from the first on, are those of its network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Network {
    kind: NetworkKind,
    family: Family,
    /// the first bit of the address is the highest
    address: u128,
    length: u8,
}

impl NetworkKind {
    /// Both kinds.
    pub const ALL: [NetworkKind; 2] = [NetworkKind::Inet, NetworkKind::Cidr];

    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            NetworkKind::Inet => "inet",
            NetworkKind::Cidr => "cidr",
        }
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<NetworkKind> {
        NetworkKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The bytes of each value of this kind: by them an Arrow type tells it from the other one, from ranges and from shapes.
    pub fn width(self) -> usize {
        match self {
            NetworkKind::Inet => NETWORK_BYTES_MAX,
            NetworkKind::Cidr => NETWORK_BYTES_MAX - ADDRESS,
        }
    }
}

impl Family {
    /// The version of the protocol.
    pub fn version(self) -> u8 {
        match self {
            Family::V4 => 4,
            Family::V6 => 6,
        }
    }

    /// The bits of an address.
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// The bytes of an address.
    pub fn bytes(self) -> usize {
        usize::from(self.bits()) / 8
    }
}

/// A word whose first bits are ones, as many as `length` says.
fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(u128::BITS - u32::from(length)).unwrap_or(0)
}

impl Network {
    /// The address of these bytes, as many as the family has, with so many bits of the network. `None` if there are not as many, or if
    /// a `cidr` has bits behind those of its network.
    pub fn new(kind: NetworkKind, family: Family, bytes: &[u8], length: u8) -> Option<Network> {
        if bytes.len() != family.bytes() || length > family.bits() {
            return None;
        }
        let mut whole = [0; ADDRESS];
        whole[..bytes.len()].copy_from_slice(bytes);
        let address = u128::from_be_bytes(whole);
        let is_network = address & !mask(length) == 0;
        (kind == NetworkKind::Inet || is_network).then_some(Network { kind, family, address, length })
    }

    /// Its type.
    pub fn kind(&self) -> NetworkKind {
        self.kind
    }

    /// Its family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// How many bits are those of its network.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// The bytes of the address, as many as its family has.
    pub fn address(&self) -> Vec<u8> {
        self.address.to_be_bytes()[..self.family.bytes()].to_vec()
    }

    /// The address as a number of so many bits as the family has.
    pub fn number(&self) -> u128 {
        self.address >> (u128::BITS - u32::from(self.family.bits()))
    }

    /// The first and the last address of its network, as numbers.
    pub fn ends(&self) -> (u128, u128) {
        let low = Network { address: self.address & mask(self.length), ..*self };
        (low.number(), self.broadcast().number())
    }

    /// The address as it is kept: [`NetworkKind::width`] bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        self.write_bytes(&mut [0; NETWORK_BYTES_MAX]).to_vec()
    }

    /// Writes the address as it is kept.
    ///
    /// # Panics
    /// If the room is less than [`NETWORK_BYTES_MAX`] bytes.
    pub fn write_bytes<'a>(&self, room: &'a mut [u8]) -> &'a [u8] {
        let bytes = &mut room[..NETWORK_BYTES_MAX];
        bytes[0] = self.family.version();
        bytes[1..=ADDRESS].copy_from_slice(&(self.address & mask(self.length)).to_be_bytes());
        bytes[ADDRESS + 1] = self.length;
        bytes[ADDRESS + 2..].copy_from_slice(&(self.address & !mask(self.length)).to_be_bytes());
        &bytes[..self.kind.width()]
    }

    /// The address that is kept as these bytes; `0.0.0.0/0` if they are none of the kind.
    pub fn from_bytes(kind: NetworkKind, bytes: &[u8]) -> Network {
        let none = Network { kind, family: Family::V4, address: 0, length: 0 };
        let family = match bytes.first() {
            Some(4) => Family::V4,
            Some(6) => Family::V6,
            _ => return none,
        };
        if bytes.len() != kind.width() || bytes[ADDRESS + 1] > family.bits() {
            return none;
        }
        let word = |from: usize| bytes[from..].first_chunk().map_or(0, |word| u128::from_be_bytes(*word));
        let host = if kind == NetworkKind::Inet { word(ADDRESS + 2) } else { 0 };
        Network { kind, family, address: (word(1) | host) & mask(family.bits()), length: bytes[ADDRESS + 1] }
    }
}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Network) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// PostgreSQL's order, whichever kinds they are of.
impl Ord for Network {
    fn cmp(&self, other: &Network) -> std::cmp::Ordering {
        let key = |of: &Network| (of.family, of.address & mask(of.length), of.length, of.address);
        key(self).cmp(&key(other)).then((self.kind as u8).cmp(&(other.kind as u8)))
    }
}
