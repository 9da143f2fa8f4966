//! Which slot of a Redis Cluster a key is in (Redis Cluster Specification, "Key distribution model").

use crate::limits::CLUSTER_SLOTS;

/// The slot of a key: CRC-16 of its hash tag, if it has one, or of all of it.
///
/// The hash tag is what stands between the first `{` and the next `}`, unless that is nothing.
#[must_use]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(hash_tag(key).unwrap_or(key)) % CLUSTER_SLOTS
}

fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let behind = key.get(memchr::memchr(b'{', key)? + 1..)?;
    let tag = behind.get(..memchr::memchr(b'}', behind)?)?;
    (!tag.is_empty()).then_some(tag)
}

/// CRC-16/XMODEM: polynomial 0x1021, from zero, neither reflected nor inverted.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let place = usize::from((crc >> 8) as u8 ^ byte);
        (crc << 8) ^ TABLE.get(place).copied().unwrap_or(0)
    })
}

const TABLE: [u16; 256] = table();

#[expect(
    clippy::indexing_slicing,
    reason = "a constant function has no iterators, and the compiler checks it"
)]
#[expect(clippy::cast_possible_truncation, reason = "the place is below 256")]
const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut place = 0;
    while place < 256 {
        let mut crc = (place as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[place] = crc;
        place += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the specification, and slots that `CLUSTER KEYSLOT` of Redis 7.0.15 told.
    #[test]
    fn a_key_is_in_the_slot_that_redis_says() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, slot) in [
            (&b"foo"[..], 12_182),
            (b"", 0),
            (b"user:u1:country", 7_500),
            (b"{user1000}.following", 3_443),
            (b"{user1000}.followers", 3_443),
            (b"user1000", 3_443),
            (b"foo{}{bar}", 8_363),
            (b"foo{{bar}}zap", 4_015),
            (b"foo{bar}{zap}", 5_061),
            (b"bar", 5_061),
            (b"foo{bar", 15_278),
        ] {
            assert_eq!(slot_of(key), slot, "{}", key.escape_ascii());
        }
    }
}
