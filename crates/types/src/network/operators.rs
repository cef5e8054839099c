//! What PostgreSQL computes of addresses and networks.
use super::{Family, Network, NetworkKind, mask};

/// Why something can't be computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkFault {
    /// Two addresses are of different families.
    Families,
    /// The result is no address, or no number of 64 bits.
    Range,
}

impl Network {
    fn with(self, address: u128, length: u8) -> Network {
        Network { address, length, ..self }
    }

    /// A whole address of the same family as an `inet`.
    fn whole(self, address: u128) -> Network {
        Network { kind: NetworkKind::Inet, ..self.with(address & mask(self.family.bits()), self.family.bits()) }
    }

    /// An `inet` of this address and length.
    pub fn inet(self) -> Network {
        Network { kind: NetworkKind::Inet, ..self }
    }

    /// The network that it is in, as a `cidr`.
    pub fn network(self) -> Network {
        Network { kind: NetworkKind::Cidr, ..self.with(self.address & mask(self.length), self.length) }
    }

    /// The last address of its network.
    pub fn broadcast(self) -> Network {
        let address = (self.address | !mask(self.length)) & mask(self.family.bits());
        Network { kind: NetworkKind::Inet, ..self.with(address, self.length) }
    }

    /// Ones for the bits of the network.
    pub fn netmask(self) -> Network {
        self.whole(mask(self.length))
    }

    /// Ones for the bits behind those of the network.
    pub fn hostmask(self) -> Network {
        self.whole(!mask(self.length))
    }

    /// The address with so many bits of the network, all of them for -1; `None` if there are not as many. A `cidr` loses what is behind.
    pub fn with_length(self, length: i32) -> Option<Network> {
        let length = if length == -1 { self.family.bits() } else { u8::try_from(length).ok()? };
        let kept = if self.kind == NetworkKind::Cidr { mask(length) } else { u128::MAX };
        (length <= self.family.bits()).then(|| self.with(self.address & kept, length))
    }

    /// Whether the first bits of two addresses are the same.
    fn begins_as(self, other: Network, length: u8) -> bool {
        self.family == other.family && (self.address ^ other.address) & mask(length) == 0
    }

    /// Whether its network is within another one; equal ones are if `or_equal` says so.
    pub fn is_within(self, other: Network, or_equal: bool) -> bool {
        let is_longer = if or_equal { self.length >= other.length } else { self.length > other.length };
        is_longer && self.begins_as(other, other.length)
    }

    /// Whether one network is within the other one.
    pub fn overlaps(self, other: Network) -> bool {
        self.begins_as(other, self.length.min(other.length))
    }

    /// The smallest network that has both.
    ///
    /// # Errors
    /// [`NetworkFault::Families`].
    pub fn merge(self, other: Network) -> Result<Network, NetworkFault> {
        self.same_family(other)?;
        let common = (self.address ^ other.address).leading_zeros();
        let common = u8::try_from(common).unwrap_or(u8::MAX).min(self.length).min(other.length);
        Ok(self.with(self.address, common).network())
    }

    fn same_family(self, other: Network) -> Result<(), NetworkFault> {
        if self.family == other.family { Ok(()) } else { Err(NetworkFault::Families) }
    }

    /// The bits turned over.
    #[expect(clippy::should_implement_trait, reason = "a plain function, as all that is computed of addresses")]
    pub fn not(self) -> Network {
        self.inet().with(!self.address & mask(self.family.bits()), self.length)
    }

    /// The bits that both have.
    ///
    /// # Errors
    /// [`NetworkFault::Families`].
    pub fn and(self, other: Network) -> Result<Network, NetworkFault> {
        self.same_family(other)?;
        Ok(self.inet().with(self.address & other.address, self.length.max(other.length)))
    }

    /// The bits that one of them has.
    ///
    /// # Errors
    /// [`NetworkFault::Families`].
    pub fn or(self, other: Network) -> Result<Network, NetworkFault> {
        self.same_family(other)?;
        Ok(self.inet().with(self.address | other.address, self.length.max(other.length)))
    }

    /// The address so many behind it.
    ///
    /// # Errors
    /// [`NetworkFault::Range`].
    pub fn plus(self, count: i128) -> Result<Network, NetworkFault> {
        let number = match u128::try_from(count) {
            Ok(count) => self.number().checked_add(count),
            Err(_) => self.number().checked_sub(count.unsigned_abs()),
        };
        let bits = u32::from(self.family.bits());
        let is_address = |number: &u128| *number <= u128::MAX >> (u128::BITS - bits);
        let number = number.filter(is_address).ok_or(NetworkFault::Range)?;
        Ok(self.inet().with(number << (u128::BITS - bits), self.length))
    }

    /// How many addresses it is behind another one.
    ///
    /// # Errors
    /// [`NetworkFault::Families`], and [`NetworkFault::Range`].
    pub fn minus(self, other: Network) -> Result<i64, NetworkFault> {
        self.same_family(other)?;
        let (own, other) = (self.number(), other.number());
        let away = i128::try_from(own.abs_diff(other)).map_err(|_| NetworkFault::Range)?;
        i64::try_from(if own < other { -away } else { away }).map_err(|_| NetworkFault::Range)
    }

    /// Whether it is of version 4.
    pub fn is_v4(self) -> bool {
        self.family == Family::V4
    }
}
