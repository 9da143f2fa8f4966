//! Metrics as Prometheus reads them: text exposition format 0.0.4.

use std::fmt::{Display, Write as _};

use super::block::{Family, Kind};
use super::histogram::Histogram;

/// `Content-Type` of a [`MetricsText`].
pub const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const WRITES: &str = "writing into a String cannot fail";

/// A page of metrics. Each family is announced once, then its samples follow.
#[derive(Debug, Default)]
pub struct MetricsText {
    text: String,
}

impl MetricsText {
    /// Announces a metric: its `HELP` and `TYPE` lines.
    pub fn family(&mut self, name: &str, help: &str, kind: Kind) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(WRITES);
    }

    /// Writes one value under its labels.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            self.text.push_str(if place == 0 { "{" } else { "," });
            self.text.push_str(label);
            self.text.push_str("=\"");
            self.label_text(text);
            self.text.push('"');
        }
        self.text.push_str(if labels.is_empty() { " " } else { "} " });
        writeln!(self.text, "{value}").expect(WRITES);
    }

    /// Announces a metric that has one value, and writes it.
    pub fn single(&mut self, name: &str, help: &str, kind: Kind, value: impl Display) {
        self.family(name, help, kind);
        self.sample(name, &[], value);
    }

    /// Writes a block's metric: `values` as its [`Family`] lays them out.
    pub(super) fn block_family(&mut self, family: &Family, values: &[u64]) {
        self.family(family.name, family.help, family.kind);
        match (family.kind, &family.labels) {
            (Kind::Histogram, _) => self.histogram(family.name, values),
            (_, Some(labels)) => {
                for (text, value) in labels.texts.iter().zip(values) {
                    self.sample(family.name, &[(labels.name, text)], value);
                }
            }
            (_, None) => {
                for value in values {
                    self.sample(family.name, &[], value);
                }
            }
        }
    }

    /// Counts per bucket, then the sum in nanoseconds.
    fn histogram(&mut self, name: &str, values: &[u64]) {
        let Some((sum_nanos, buckets)) = values.split_last() else { return };
        let bucket_name = format!("{name}_bucket");
        let mut count = 0_u64;
        let mut bounds = Histogram::bounds_micros();
        for bucket in buckets {
            count = count.wrapping_add(*bucket);
            let bound =
                bounds.next().map_or("+Inf".into(), |micros| Seconds(micros * 1_000).to_string());
            self.sample(&bucket_name, &[("le", &bound)], count);
        }
        self.sample(&format!("{name}_sum"), &[], Seconds(*sum_nanos));
        self.sample(&format!("{name}_count"), &[], count);
    }

    fn label_text(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                other => self.text.push(other),
            }
        }
    }

    /// The page.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Nanoseconds, written as seconds with as many digits as they need.
#[derive(Clone, Copy, Debug)]
pub struct Seconds(pub u64);

impl Display for Seconds {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NANOS: u64 = 1_000_000_000;
        let (whole, rest) = (self.0 / NANOS, self.0 % NANOS);
        if rest == 0 {
            return write!(to, "{whole}");
        }
        let digits = format!("{rest:09}");
        write!(to, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_keep_every_nanosecond() {
        for (nanos, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (8_000, "0.000008"),
            (1_500_000_000, "1.5"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(Seconds(nanos).to_string(), text);
        }
    }

    #[test]
    fn a_label_cannot_break_out_of_its_quotes() {
        let mut page = MetricsText::default();
        page.sample("name", &[("a", "x\"} 1\ny\\"), ("b", "é")], 7);
        assert_eq!(page.into_text(), "name{a=\"x\\\"} 1\\ny\\\\\",b=\"é\"} 7\n");
    }
}
