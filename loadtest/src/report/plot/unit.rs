//! How a number is written beside an axis or a bar.

/// What a number counts. The text carries the unit, except for `Count` and `Number`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Microseconds, written as µs, ms or s.
    Micros,
    /// Seconds, written as s, min or h.
    Seconds,
    /// Things: 1500 is 1.5 k.
    Count,
    /// `0..=1`, written as per cent.
    Share,
    /// As it is.
    Number,
}

impl Unit {
    /// The number as text, with at most three digits where that loses nothing that can be seen.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Micros => scaled(value, &[(1e6, " s"), (1e3, " ms"), (1.0, " µs")]),
            Self::Seconds => scaled(value, &[(3600.0, " h"), (60.0, " min"), (1.0, " s")]),
            Self::Count => scaled(value, &[(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")]),
            Self::Share => per_cent(value),
            Self::Number => digits(value),
        }
    }
}

/// The largest unit that the value reaches; the smallest one for what reaches none.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let unit = units.iter().find(|(size, _)| value.abs() >= *size).or(units.last());
    let Some((size, name)) = unit else { return digits(value) };
    if value == 0.0 {
        return "0".to_owned();
    }
    format!("{}{name}", digits(value / size))
}

/// 0.999 is 99.9 %, and never 100 %: the nines are what the reader looks for.
fn per_cent(share: f64) -> String {
    let missing = (1.0 - share) * 100.0;
    if share < 1.0 && missing < 0.1 {
        let places = (-missing.log10() - 1e-6).ceil().clamp(0.0, 9.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 9")]
        return format!("{:.*} %", places as usize, share * 100.0);
    }
    format!("{} %", digits(share * 100.0))
}

/// Three digits, and no zeros after the point.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_carries_the_unit_that_fits_it() {
        let cases = [
            (Unit::Micros, 250.0, "250 µs"),
            (Unit::Micros, 1500.0, "1.5 ms"),
            (Unit::Micros, 2e6, "2 s"),
            (Unit::Micros, 0.25, "0.25 µs"),
            (Unit::Seconds, 90.0, "1.5 min"),
            (Unit::Seconds, 86_400.0, "24 h"),
            (Unit::Count, 14_000.0, "14 k"),
            (Unit::Count, 0.0, "0"),
            (Unit::Share, 0.125, "12.5 %"),
            (Unit::Share, 1.0, "100 %"),
            (Unit::Number, 19.974, "20"),
            (Unit::Number, 0.8151, "0.815"),
        ];
        for (unit, value, text) in cases {
            assert_eq!(unit.text(value), text);
        }
    }

    #[test]
    fn nines_are_never_rounded_away() {
        for (share, text) in
            [(0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.99999, "99.999 %")]
        {
            assert_eq!(Unit::Share.text(share), text);
        }
    }
}
