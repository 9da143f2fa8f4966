//! What the fuzz targets share: their input is one byte that says how to split, then the bytes.

/// The bytes, and the size of the pieces in which they are fed the second time: 1 to 64.
pub fn split(input: &[u8]) -> Option<(&[u8], usize)> {
    let (first, bytes) = input.split_first()?;
    Some((bytes, usize::from(first % 64) + 1))
}

/// The ends of growing prefixes of `length` bytes, `step` apart; the last is `length`.
pub fn prefixes(length: usize, step: usize) -> impl Iterator<Item = usize> {
    (0..length).step_by(step).skip(1).chain([length])
}
