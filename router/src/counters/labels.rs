//! Closed sets of label values. Nothing that a client sent is ever a label.

use switchboard_shared::decide::Reason;

use crate::shadow::owned::Kind;

/// A closed set of label values.
pub trait Labels: 'static {
    /// Name of the label.
    const NAME: &'static str;
    /// All its values.
    const TEXTS: &'static [&'static str];
    /// What the code names a value with.
    type Key: Copy;
    /// Place of a value in `TEXTS`.
    fn index(key: Self::Key) -> usize;
}

/// An enum whose variants are the label's values.
macro_rules! label_enum {
    ($(#[$about:meta])* $Name:ident by $label:literal {
        $($(#[$what:meta])* $Variant:ident = $text:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum $Name { $($(#[$what])* $Variant,)+ }

        impl $Name {
            /// How many there are.
            pub const COUNT: usize = <Self as Labels>::TEXTS.len();
        }

        impl Labels for $Name {
            const NAME: &'static str = $label;
            const TEXTS: &'static [&'static str] = &[$($text),+];
            type Key = Self;
            fn index(key: Self) -> usize { key as usize }
        }
    };
}

/// A list of `reason()` texts of error types elsewhere. One that is not listed counts as `other`.
macro_rules! label_reasons {
    ($(#[$about:meta])* $Name:ident by $label:literal [$($text:literal,)+]) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Name;

        impl $Name {
            /// How many there are, `other` among them.
            pub const COUNT: usize = <Self as Labels>::TEXTS.len();
        }

        impl Labels for $Name {
            const NAME: &'static str = $label;
            const TEXTS: &'static [&'static str] = &[$($text,)+ "other"];
            type Key = &'static str;
            fn index(key: &'static str) -> usize {
                let found = Self::TEXTS.iter().position(|text| *text == key);
                debug_assert!(found.is_some(), "{key} belongs into counters/labels.rs");
                found.unwrap_or(Self::COUNT - 1)
            }
        }
    };
}

label_enum! {
    /// The kind of a response's status.
    ResponseClass by "class" {
        /// 200 to 299.
        Success = "2xx",
        /// 300 to 399.
        Redirection = "3xx",
        /// 400 to 499.
        ClientError = "4xx",
        /// 500 and above.
        ServerError = "5xx",
    }
}

impl ResponseClass {
    /// The class of a final status code; what is none counts as a server's fault.
    #[must_use]
    pub const fn of(status: u16) -> Self {
        match status {
            200..=299 => Self::Success,
            300..=399 => Self::Redirection,
            400..=499 => Self::ClientError,
            _ => Self::ServerError,
        }
    }
}

/// How a decision was reached; Fallouts are among the reasons.
impl Labels for Reason {
    const NAME: &'static str = "reason";
    const TEXTS: &'static [&'static str] = &{
        let mut texts = [""; Self::ALL.len()];
        let mut place = 0;
        while place < texts.len() {
            texts[place] = Self::ALL[place].label();
            place += 1;
        }
        texts
    };
    type Key = Self;
    fn index(key: Self) -> usize {
        key as usize
    }
}

label_enum! {
    /// Why a worker made or handed over no copy.
    NotCopied by "reason" {
        /// The ring to the shadow core was full.
        RingFull = "ring_full",
        /// `shadow.buffer_bytes_max` was held already.
        BuffersFull = "buffers_full",
        /// The request's body is above `shadow.request_bytes_max`.
        TooLarge = "too_large",
        /// The request's body never came to its end.
        RequestCut = "request_cut",
        /// The shadow core is off, or could not start.
        NoShadowCore = "no_shadow_core",
    }
}

label_enum! {
    /// Why the shadow core gave a record up.
    ShadowLoss by "reason" {
        /// Above the target's bytes per second.
        Rate = "rate",
        /// Larger than a record may be, after `keep` or `drop` wrote its JSON anew.
        TooLarge = "too_large",
        /// The oldest segment made room.
        SpoolFull = "spool_full",
        /// The disk took it not.
        SpoolFailed = "spool_failed",
        /// The brokers took it not, and never would.
        KafkaRefused = "kafka_refused",
    }
}

/// What a record is.
impl Labels for Kind {
    const NAME: &'static str = "kind";
    const TEXTS: &'static [&'static str] = &["shadow", "exposure"];
    type Key = Self;
    fn index(key: Self) -> usize {
        key as usize
    }
}

label_enum! {
    /// Why an endpoint was ejected.
    Ejection by "cause" {
        /// Failures in a row: it is dead.
        InARow = "failures_in_a_row",
        /// A high share of failures: it works badly.
        Share = "failure_share",
    }
}

label_reasons! {
    /// Why a request was refused as malformed or over a limit.
    BadRequest by "reason" [
        "bare_line_feed",
        "empty_lines",
        "request_line",
        "http_version",
        "method",
        "target_too_long",
        "target",
        "head_too_large",
        "headers_too_many",
        "folded_line",
        "header_name",
        "header_value",
        "host_missing",
        "host_repeated",
        "host",
        "content_length",
        "content_length_repeated",
        "transfer_encoding",
        "length_and_encoding",
        "expectation",
        "connection_options_too_many",
        "body_too_large",
        "chunk_size",
        "chunk_size_overflow",
        "chunk_end",
        "chunk_extension",
        "chunk_extensions_too_long",
        "trailer",
        "trailers_too_long",
        "body_truncated",
        "json_malformed",
        "json_too_deep",
        "json_duplicate_member",
        "body_encoded",
        "facts_member_taken",
        "facts_no_object",
        "attribute_type",
        "attribute_not_finite",
        "attribute_too_long",
        "attribute_encoding",
        "head_timeout",
        "body_timeout",
    ]
}

label_reasons! {
    /// What went wrong between the router and an endpoint.
    UpstreamFailure by "reason" [
        "connect_refused",
        "connect_timeout",
        "first_byte_timeout",
        "response_idle_timeout",
        "total_timeout",
        "upstream_head",
        "upstream_head_truncated",
        "upstream_body",
        "upstream_truncated",
        "upstream_upgrade",
        "upstream_interim_too_many",
        "upstream_closed_unanswered",
    ]
}

label_reasons! {
    /// Why a Snapshot was refused or could not become active.
    SnapshotRefusal by "reason" [
        "too_large",
        "no_snapshot",
        "format",
        "flags",
        "truncated",
        "trailing",
        "unknown_key",
        "signature",
        "digest",
        "version_zero",
        "not_newer",
        "same_version",
        "archive",
        "hash_version",
        "group",
        "not_yet_valid",
        "expired",
        "semantic",
        "unresolved_endpoint",
        "state_not_saved",
        "not_prepared",
        "core_not_swapped",
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class() {
        assert_eq!(ResponseClass::of(200), ResponseClass::Success);
        assert_eq!(ResponseClass::of(304), ResponseClass::Redirection);
        assert_eq!(ResponseClass::of(499), ResponseClass::ClientError);
        assert_eq!(ResponseClass::of(503), ResponseClass::ServerError);
        assert_eq!(ResponseClass::of(999), ResponseClass::ServerError);
        assert_eq!(ResponseClass::of(0), ResponseClass::ServerError);
    }

    #[test]
    fn a_label_stands_where_its_key_points() {
        for reason in Reason::ALL {
            assert_eq!(Reason::TEXTS[Reason::index(reason)], reason.label());
        }
        assert_eq!(BadRequest::TEXTS[BadRequest::index("json_malformed")], "json_malformed");
    }

    #[test]
    #[cfg(not(debug_assertions))]
    fn an_unlisted_reason_counts_as_other() {
        assert_eq!(BadRequest::TEXTS[BadRequest::index("new")], "other");
    }
}
