//! Blocks of counters: what each is called, and its values in the same order.

/// The name and the values of a label.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct LabelSet {
    /// Name of the label.
    pub(super) name: &'static str,
    /// All its values.
    pub(super) texts: &'static [&'static str],
}

/// How a metric behaves over time, as Prometheus names it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by size.
    Histogram,
}

/// One metric with its description.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Family {
    /// Such as `switchboard_requests_total`.
    pub(super) name: &'static str,
    /// One sentence.
    pub(super) help: &'static str,
    /// How it behaves over time.
    pub(super) kind: Kind,
    /// Its label, if it has one.
    pub(super) labels: Option<LabelSet>,
    /// How many values a sample of it has.
    pub(super) values: usize,
}

/// One member of a block.
pub(super) trait Metric: Default {
    /// How it behaves over time.
    const KIND: Kind;
    /// Its label, if it has one.
    fn labels() -> Option<LabelSet>;
    /// Appends its values: one, or one per label, or one per bucket and the sum.
    fn sample(&self, values: &mut Vec<u64>);
}

/// A struct of metrics that one thread writes.
pub(super) trait Block: Default {
    /// What its members are called, in order.
    fn families() -> Vec<Family>;
    /// Appends the values of all members, in the same order.
    fn sample(&self, values: &mut Vec<u64>);
}

/// Declares a block. The one doc line of a member is its help text.
///
/// 128 bytes of alignment: two cache lines, since processors fetch lines in pairs.
macro_rules! counter_block {
    ($(#[$about:meta])* pub struct $Block:ident {
        $(#[doc = $help:literal] $field:ident: $Metric:ty = $name:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct $Block { $(#[doc = $help] pub $field: $Metric,)+ }

        impl $crate::counters::block::Block for $Block {
            fn families() -> Vec<$crate::counters::block::Family> {
                vec![$($crate::counters::block::family::<$Metric>($name, $help),)+]
            }

            fn sample(&self, values: &mut Vec<u64>) {
                $($crate::counters::block::Metric::sample(&self.$field, values);)+
            }
        }
    };
}
pub(super) use counter_block;

/// Describes a metric of type `M`.
pub(super) fn family<M: Metric>(name: &'static str, help: &'static str) -> Family {
    let mut values = Vec::new();
    M::default().sample(&mut values);
    Family { name, help: help.trim(), kind: M::KIND, labels: M::labels(), values: values.len() }
}
