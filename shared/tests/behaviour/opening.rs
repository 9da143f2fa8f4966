//! What comes before the payload is believed: size, header, signature, digest. (CF-02)

use switchboard_shared::snapshot::{
    Expectations, HEADER_BYTES, SecretKey, Snapshot, SnapshotError, SnapshotVersion, TrustedKeys,
    build, sign,
};

use crate::sample;

fn file() -> Vec<u8> {
    let version = SnapshotVersion::new(7).expect("not zero");
    build(&sample::definition(), version, 1_000, &sample::key()).expect("a good Definition")
}

fn open(file: &[u8]) -> Result<Snapshot, SnapshotError> {
    Snapshot::open(file, &sample::trusted(), Expectations::of_group("test"))
}

fn reason(file: &[u8]) -> &'static str {
    open(file).map(drop).expect_err("it must be refused").reason()
}

#[test]
fn the_header_says_what_was_signed() {
    let file = file();
    let snapshot = open(&file).expect("untouched");
    assert_eq!(snapshot.version().get(), 7);
    assert_eq!(snapshot.created_unix_ms(), 1_000);
    assert_eq!(snapshot.key_id(), sample::key().public().id());
    assert_eq!(snapshot.digest().0, *blake3::hash(&file[HEADER_BYTES..]).as_bytes());
    assert_eq!(snapshot.bytes(), file);
    assert!(!snapshot.is_newest_already());
    assert_eq!(snapshot.payload().group, "test");
}

#[test]
fn the_same_content_builds_to_the_same_bytes() {
    assert_eq!(file(), file());
    let next = build(&sample::definition(), SnapshotVersion::FIRST, 2_000, &sample::key());
    let next = open(&next.expect("good")).expect("good");
    assert_eq!(next.digest(), open(&file()).expect("good").digest(), "whatever the version");
}

/// Every byte of the header, in every region, and the first and last ones of the payload.
#[test]
fn a_flipped_byte_is_refused_with_the_reason_of_its_region() {
    let file = file();
    for place in (0..HEADER_BYTES + 64).chain(file.len() - 64..file.len()) {
        for bit in [0x01, 0x80] {
            let mut flipped = file.clone();
            flipped[place] ^= bit;
            let expected: &[&str] = match place {
                0..8 => &["no_snapshot"],
                8..10 => &["format"],
                10..12 => &["flags"],
                12..28 => &["signature"], // version, created
                28..36 => &["unknown_key"],
                36..44 => &["truncated", "trailing"], // the payload's length
                44..HEADER_BYTES => &["signature"],   // digest, signature
                _ => &["digest"],
            };
            let found = reason(&flipped);
            assert!(expected.contains(&found), "byte {place}: {found}, not {expected:?}");
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let file = file();
    for length in (0..HEADER_BYTES + 8).chain([file.len() / 2, file.len() - 1]) {
        assert_eq!(reason(&file[..length]), "truncated", "{length}");
    }
}

/// CF-02: signed bytes and parsed bytes are the same ones.
#[test]
fn nothing_may_follow_the_payload() {
    for more in [&b"\0"[..], b"x", &[0; 4_096]] {
        assert_eq!(reason(&[&file(), more].concat()), "trailing");
    }
}

#[test]
fn a_file_above_the_cap_is_not_even_looked_at() {
    let file = file();
    for (bytes_max, expected) in [(file.len(), None), (file.len() - 1, Some("too_large"))] {
        let expected_of = Expectations { bytes_max, ..Expectations::of_group("test") };
        let opened = Snapshot::open(&file, &sample::trusted(), expected_of);
        assert_eq!(opened.err().map(|error| error.reason()), expected);
    }
    let garbage = vec![0; 100];
    let expected = Expectations { bytes_max: 99, ..Expectations::of_group("test") };
    let opened = Snapshot::open(&garbage, &sample::trusted(), expected);
    assert_eq!(opened.map(drop).expect_err("too large").reason(), "too_large");
}

/// CF-02: a key that is not in the trusted set, and no key at all.
#[test]
fn an_unknown_signer_is_refused() {
    let other = SecretKey::from_seed(&[8; 32]);
    let file = build(&sample::definition(), SnapshotVersion::FIRST, 0, &other).expect("good");
    assert_eq!(reason(&file), "unknown_key");
    let both = TrustedKeys::new([sample::key().public(), other.public()]).expect("two keys");
    assert!(Snapshot::open(&file, &both, Expectations::of_group("test")).is_ok());
    let nobody = TrustedKeys::default();
    let opened = Snapshot::open(&file, &nobody, Expectations::of_group("test"));
    assert_eq!(opened.map(drop).expect_err("nobody is trusted").reason(), "unknown_key");
}

/// CF-02: another key's signature under a trusted key's name, none, and S + L instead of S.
#[test]
fn a_signature_that_does_not_fit_is_refused() {
    let file = file();
    let (head, rest) = file.split_at(76);
    let (signature, payload) = rest.split_at(64);
    let with = |signature: &[u8]| [head, signature, payload].concat();

    let other = build(
        &sample::definition(),
        SnapshotVersion::new(7).expect("not zero"),
        1_000,
        &SecretKey::from_seed(&[8; 32]),
    )
    .expect("good");
    assert_eq!(reason(&with(&other[76..140])), "signature");
    assert_eq!(reason(&with(&[0; 64])), "signature");

    let mut malleated = signature.to_vec();
    add_group_order(&mut malleated[32..]);
    assert_ne!(malleated, signature);
    assert_eq!(reason(&with(&malleated)), "signature");
}

/// S + L (RFC 8032 §5.1.7 wants S below L): the classic second signature of the same message.
fn add_group_order(scalar: &mut [u8]) {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut carry = 0;
    for (byte, order) in scalar.iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = u8::try_from(sum & 0xff).expect("masked");
        carry = sum >> 8;
    }
}

/// CF-02: a signature of another purpose: the same bytes, signed without our domain's prefix.
#[test]
fn a_signature_made_for_another_purpose_is_refused() {
    use ed25519_dalek::{Signer, SigningKey};

    let file = file();
    let signature = SigningKey::from_bytes(&[7; 32]).sign(&file[..76]).to_bytes();
    assert_eq!(reason(&[&file[..76], &signature, &file[140..]].concat()), "signature");
}

/// CF-02: a Snapshot for another group of routers, well signed.
#[test]
fn a_snapshot_for_another_group_is_refused() {
    let file = file();
    let opened = Snapshot::open(&file, &sample::trusted(), Expectations::of_group("prod"));
    let error = opened.map(drop).expect_err("another group");
    assert_eq!(error.reason(), "group");
    assert_eq!(error.to_string(), "meant for group `test`, not for `prod`");
}

#[test]
fn version_zero_is_refused_even_when_it_is_signed() {
    use ed25519_dalek::{Signer, SigningKey};

    let mut file = file();
    file[12..20].fill(0);
    let message = [b"switchboard 2026-11 snapshot signature v1\0", &file[..76]].concat();
    let signature = SigningKey::from_bytes(&[7; 32]).sign(&message).to_bytes();
    file[76..140].copy_from_slice(&signature);
    assert_eq!(reason(&file), "version_zero");
}

#[test]
fn a_signed_payload_that_is_no_archive_is_refused() {
    for payload in [&b""[..], b"{}", &[0xff; 1_000]] {
        let file = sign(payload, SnapshotVersion::FIRST, 0, &sample::key());
        assert_eq!(reason(&file), "archive");
    }
}
