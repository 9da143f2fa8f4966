//! A finished record, with everything that its way needs.

/// What a record is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Kind {
    /// A copy of a request.
    Shadow = 0,
    /// A Unit met an Arm.
    Exposure = 1,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Shadow, Self::Exposure];

    /// Name and version of the record's form.
    #[must_use]
    pub const fn schema(self) -> &'static str {
        match self {
            Self::Shadow => "switchboard.shadow/1",
            Self::Exposure => "switchboard.exposure/1",
        }
    }

    /// The kind of a number in a segment file.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A record as it is sent or kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record<'a> {
    /// Its number among all records of this spool, in the order of making.
    pub sequence: u64,
    /// What it is.
    pub kind: Kind,
    /// When the request's head was complete.
    pub time_unix_ms: u64,
    /// Where it goes.
    pub topic: &'a str,
    /// The Unit, if there is one.
    pub key: Option<&'a [u8]>,
    /// As `docs/shadow.md` has it.
    pub value: &'a [u8],
}

/// The same with its own bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnedRecord {
    sequence: u64,
    kind: Kind,
    time_unix_ms: u64,
    topic: String,
    key: Option<Vec<u8>>,
    value: Vec<u8>,
}

impl OwnedRecord {
    /// The record itself.
    pub fn record(&self) -> Record<'_> {
        Record {
            sequence: self.sequence,
            kind: self.kind,
            time_unix_ms: self.time_unix_ms,
            topic: &self.topic,
            key: self.key.as_deref(),
            value: &self.value,
        }
    }
}

impl From<Record<'_>> for OwnedRecord {
    fn from(record: Record<'_>) -> Self {
        Self {
            sequence: record.sequence,
            kind: record.kind,
            time_unix_ms: record.time_unix_ms,
            topic: record.topic.to_owned(),
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.to_vec(),
        }
    }
}

/// How many records of each kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts([u64; Kind::ALL.len()]);

impl Counts {
    /// One more.
    pub fn add(&mut self, kind: Kind) {
        self.0[kind as usize] += 1;
    }

    /// One less.
    pub fn remove(&mut self, kind: Kind) {
        debug_assert!(self.0[kind as usize] > 0, "only what was counted is removed");
        self.0[kind as usize] = self.0[kind as usize].saturating_sub(1);
    }

    /// Of one kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// Of all kinds.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// These and those.
    pub fn extend(&mut self, other: Self) {
        for (own, more) in self.0.iter_mut().zip(other.0) {
            *own += more;
        }
    }
}
