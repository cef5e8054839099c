//! Addresses against what PostgreSQL answers.
use super::text::NetworkTextFault;
use super::*;

fn inet(text: &str) -> Network {
    Network::parse(NetworkKind::Inet, text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"))
}

fn cidr(text: &str) -> Network {
    Network::parse(NetworkKind::Cidr, text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"))
}

#[test]
fn addresses_are_read_and_written_as_postgresql_does() {
    let of_inet = [
        ("10.0.0.1", "10.0.0.1"),
        ("1.2.3.4.", "1.2.3.4"),
        ("10.1.2.3/08", "10.1.2.3/8"),
        ("10./8", "10.0.0.0/8"),
        ("10.1/16", "10.1.0.0/16"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::", "::"),
        ("::5", "::5"),
        ("1::", "1::"),
        ("::1:0:5", "::1:0:5"),
        ("::102:304", "::1.2.3.4"),
        ("::FFFF:1.2.3.4/100", "::ffff:1.2.3.4/100"),
        ("::ffff:1.2", "::ffff:1.2.0.0"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("2001:db8::1/64", "2001:db8::1/64"),
    ];
    for (text, shown) in of_inet {
        assert_eq!(inet(text).to_string(), shown, "{text}");
    }
    let of_cidr = [
        ("10", "10.0.0.0/8"),
        ("10.1", "10.1.0.0/16"),
        ("192.1", "192.1.0.0/24"),
        ("224", "224.0.0.0/4"),
        ("0xff01", "255.1.0.0/32"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("2001:db8::/32", "2001:db8::/32"),
    ];
    for (text, shown) in of_cidr {
        assert_eq!(cidr(text).to_string(), shown, "{text}");
    }
}

#[test]
fn what_is_no_address_is_refused() {
    let none = [
        "",
        " ",
        "10",
        "10.0.0",
        "256.0.0.1",
        "10.0.0.1/33",
        "10.0.0.1/",
        "10.0.0.1/a",
        "10.0.0.1 ",
        "1.2.3.4.5",
        "10/16",
        ":",
        "::1::",
        "1::2::3",
        ":1",
        "1:",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::8",
        "1:2:3",
        "12345::",
        "::g",
        "::1/129",
        "::1/08",
        "::1/",
        "1.2.3.4::",
        "::1.2.3.04",
        "::1.2.3.4.5",
        "::1.2.3.256",
    ];
    for text in none {
        assert_eq!(Network::parse(NetworkKind::Inet, text), Err(NetworkTextFault::Syntax), "{text}");
    }
    assert_eq!(Network::parse(NetworkKind::Cidr, "10.1.2.3/8"), Err(NetworkTextFault::Host));
    assert_eq!(Network::parse(NetworkKind::Cidr, "::1/127"), Err(NetworkTextFault::Host));
    assert_eq!(Network::parse(NetworkKind::Cidr, "10.1.2.3.4"), Err(NetworkTextFault::Syntax));
    assert_eq!(Network::parse(NetworkKind::Cidr, "10."), Err(NetworkTextFault::Syntax));
}

#[test]
fn networks_are_abbreviated_to_what_counts() {
    let shown = [
        ("10.1.0.0/16", "10.1/16"),
        ("10.128.0.0/9", "10.128/9"),
        ("0.0.0.0/0", "0/0"),
        ("2001:db8::/32", "2001:db8/32"),
        ("2001::/16", "2001::/16"),
        ("::/0", "::/0"),
        ("::ffff:1.2.3.0/120", "::ffff:1.2.3/120"),
        ("::1.2.3.4/128", "::1.2.3.4/128"),
        ("1:0:0:2::/64", "1::2/64"),
        ("::5/128", "::5/128"),
    ];
    for (text, abbreviated) in shown {
        assert_eq!(cidr(text).abbreviated(), abbreviated, "{text}");
    }
    assert_eq!(inet("10.1.0.0/16").abbreviated(), "10.1.0.0/16");
}

#[test]
fn bytes_are_in_the_order_of_addresses_and_come_back() {
    let ordered = [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.0.0.1/8",
        "10.0.0.0/9",
        "10.0.0.0",
        "10.0.0.1",
        "10.128.0.0/9",
        "11.0.0.0/8",
        "255.255.255.255",
        "::/0",
        "::1/0",
        "::/128",
        "2001:db8::/32",
        "2001:db8::1/64",
        "2001:db8::1",
        "ffff::",
    ];
    for pair in ordered.windows(2) {
        let (one, other) = (inet(pair[0]), inet(pair[1]));
        assert!(one < other && one.to_bytes() < other.to_bytes(), "{pair:?}");
    }
    for text in ordered {
        let value = inet(text);
        assert_eq!(Network::from_bytes(NetworkKind::Inet, &value.to_bytes()), value, "{text}");
        let network = value.network();
        assert_eq!(Network::from_bytes(NetworkKind::Cidr, &network.to_bytes()), network, "{text}");
        assert_eq!(network.to_bytes().len(), NetworkKind::Cidr.width());
    }
    for bytes in [&[][..], &[4], &[9; 34], &[4; 34], &[6; 18]] {
        let _any = Network::from_bytes(NetworkKind::Inet, bytes);
    }
    assert_eq!(Network::from_bytes(NetworkKind::Cidr, &[4; 34]).to_string(), "0.0.0.0/0");
}

#[test]
fn networks_contain_those_within() {
    let within = |one: &str, other: &str, or_equal| inet(one).is_within(inet(other), or_equal);
    assert!(within("10.1.2.3", "10.0.0.0/8", false) && !within("10.0.0.0/8", "10.0.0.0/8", false));
    assert!(within("10.9.0.0/8", "10.0.0.0/8", true) && !within("10.0.0.0/8", "10.0.0.0/9", true));
    assert!(within("::1", "::/0", false) && !within("::1", "0.0.0.0/0", true));
    assert!(inet("10.0.0.0/8").overlaps(inet("10.1.0.0/16")) && !inet("10.0.0.0/16").overlaps(inet("10.1.0.0/16")));
    assert!(!inet("0.0.0.0/0").overlaps(inet("::/0")));
}

#[test]
fn parts_and_sums_are_those_of_postgresql() {
    let of = inet("10.1.2.3/12");
    assert_eq!(of.network().to_string(), "10.0.0.0/12");
    assert_eq!(of.broadcast().to_string(), "10.15.255.255/12");
    assert_eq!((of.netmask().to_string(), of.hostmask().to_string()), ("255.240.0.0".into(), "0.15.255.255".into()));
    assert_eq!((of.host(), of.with_mask(), of.length()), ("10.1.2.3".into(), "10.1.2.3/12".into(), 12));
    assert_eq!(of.not().to_string(), "245.254.253.252/12");
    assert_eq!(inet("10.0.0.1").plus(300).map(|sum| sum.to_string()), Ok("10.0.1.45".into()));
    assert_eq!(inet("10.0.0.1").minus(inet("10.0.1.1")), Ok(-256));
    assert_eq!(inet("0.0.0.0").plus(-1), Err(NetworkFault::Range));
    assert_eq!(inet("255.255.255.255").plus(1), Err(NetworkFault::Range));
    assert_eq!(inet("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").plus(1), Err(NetworkFault::Range));
    assert_eq!(inet("8000::").minus(inet("::")), Err(NetworkFault::Range));
    assert_eq!(inet("::1").minus(inet("0.0.0.1")), Err(NetworkFault::Families));
    assert_eq!(inet("10.0.0.1").merge(inet("10.0.1.1")).map(|of| of.to_string()), Ok("10.0.0.0/23".into()));
    assert_eq!(cidr("10.1.2.0/24").with_length(16).map(|of| of.to_string()), Some("10.1.0.0/16".into()));
    assert_eq!(of.with_length(-1).map(|of| of.to_string()), Some("10.1.2.3".into()));
    assert_eq!(of.with_length(33), None);
    assert_eq!(inet("::1/0").ends(), (0, u128::MAX));
}
