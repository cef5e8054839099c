//! Numbers against whole units in wide integers, and against what PostgreSQL answers.
use num_bigint::BigInt;
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Numeric {
    Numeric::parse(text).unwrap()
}

fn shown(number: &Number) -> String {
    number.to_numeric().unwrap().to_string()
}

#[test]
fn numbers_show_the_decimals_that_they_were_written_with() {
    for text in
        ["0", "0.00", "1", "-1.50", "100", "1000000", "0.001", "-0.0500", "12345.6789", "99.99", "NaN", "Infinity"]
    {
        assert_eq!(read(text).to_string(), text);
    }
    let others = [
        (" +1.5 ", "1.5"),
        ("1e3", "1000"),
        ("1.50e1", "15.0"),
        ("1.5e-3", "0.0015"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-inf", "-Infinity"),
        ("nan", "NaN"),
        ("-0", "0"),
        ("0e5", "0"),
        ("007", "7"),
    ];
    for (text, wanted) in others {
        assert_eq!(read(text).to_string(), wanted, "{text}");
    }
    let long = format!("{}.{}", "9".repeat(200), "7".repeat(300));
    assert_eq!(read(&long).to_string(), long);
    assert_eq!(read("1e131071").to_string().len(), 131_072);
    assert_eq!(read("1e-16383").to_string().len(), 16_385);
}

#[test]
fn what_is_no_number_is_told() {
    for text in ["", " ", ".", "-", "1a", "1e", "e5", "1 2", "--1", "+nan", "0x10"] {
        assert_eq!(Numeric::parse(text).err(), Some(NumericTextFault::Syntax), "{text}");
    }
    for text in ["1e131072", "1e-16384", "1e99999999999999999999"] {
        assert_eq!(Numeric::parse(text).err(), Some(NumericTextFault::Range), "{text}");
    }
}

#[test]
fn numbers_of_one_value_have_one_key() {
    assert_eq!(read("1.5"), read("1.500"));
    assert_eq!(key_of(read("-20.00").as_bytes()), key_of(read("-2e1").as_bytes()));
    assert_eq!(key_of(read("0.000").as_bytes()), read("0").as_bytes());
    assert!(read("1.5").as_bytes() != read("1.500").as_bytes());
    let zeros = format!("2.{}", "0".repeat(300));
    assert_eq!(read(&zeros), read("2"));
    assert_eq!(read(&zeros).to_string(), zeros);
}

#[test]
fn nan_is_above_all_and_the_infinities_are_around_all() {
    let order = [
        "-inf", "-1e100", "-5", "-0.1", "-1e-200", "0", "1e-200", "0.09", "0.1", "1", "99", "100", "1e90", "inf", "nan",
    ];
    for pair in order.windows(2) {
        let [low, high] = [read(pair[0]), read(pair[1])];
        assert!(low < high && low.as_bytes() < high.as_bytes(), "{pair:?}");
    }
}

#[test]
fn quotients_have_sixteen_digits_at_least() {
    let quotients = [
        ("1", "3", "0.33333333333333333333"),
        ("10.0", "3", "3.3333333333333333"),
        ("1000000.0", "7", "142857.142857142857"),
        ("2", "1", "2.0000000000000000"),
        ("0", "5", "0.00000000000000000000"),
        ("-7", "2", "-3.5000000000000000"),
        ("1e-10", "3", "0.0000000000333333333333333333"),
        ("7e-30", "3", "0.000000000000000000000000000002333333333333333333"),
        ("12345678901234567890.5", "7", "1763668414462081127.2"),
        ("5e9", "0.00007", "71428571428571.42857"),
    ];
    for (dividend, divisor, wanted) in quotients {
        let quotient = read(dividend).number().divided_by(&read(divisor).number()).unwrap();
        assert_eq!(shown(&quotient), wanted, "{dividend} / {divisor}");
    }
    let zero = read("0").number();
    assert_eq!(read("1").number().divided_by(&zero), Err(NumericFault::DivisionByZero));
    assert_eq!(read("nan").number().divided_by(&zero), Ok(Number::NotANumber));
}

#[test]
fn what_is_infinite_or_no_number_stays_so() {
    let [infinite, less, nan, one, zero] = ["inf", "-inf", "nan", "1", "0"].map(|text| read(text).number());
    assert_eq!(infinite.plus(&less), Number::NotANumber);
    assert_eq!(shown(&infinite.plus(&one)), "Infinity");
    assert_eq!(shown(&one.minus(&infinite)), "-Infinity");
    assert_eq!(infinite.times(&zero), Number::NotANumber);
    assert_eq!(shown(&less.times(&less)), "Infinity");
    assert_eq!(shown(&one.divided_by(&less).unwrap()), "0");
    assert_eq!(shown(&one.remainder(&infinite).unwrap()), "1");
    assert_eq!(nan.plus(&one), Number::NotANumber);
    assert_eq!(infinite.remainder(&zero), Err(NumericFault::DivisionByZero));
}

#[test]
fn numbers_are_rounded_to_any_place() {
    let of = |text: &str, place, is_cut| match read(text).number() {
        Number::Finite(exact) => shown(&Number::Finite(exact.to_place(place, is_cut))),
        other => panic!("{other:?}"),
    };
    assert_eq!(of("1.005", 2, false), "1.01");
    assert_eq!(of("-1.005", 2, false), "-1.01");
    assert_eq!(of("1.5", 3, false), "1.500");
    assert_eq!(of("155.9", -1, false), "160");
    assert_eq!(of("155.9", -1, true), "150");
    assert_eq!(of("-1.99", 0, true), "-1");
    let up = |text: &str, is_up| match read(text).number() {
        Number::Finite(exact) => shown(&Number::Finite(exact.to_whole(is_up))),
        other => panic!("{other:?}"),
    };
    assert_eq!([up("1.1", true), up("-1.1", true), up("1.1", false), up("-1.1", false)], ["2", "-1", "1", "-2"]);
    assert_eq!([up("-3.0", false), up("3.0", true), up("0.0", true)], ["-3", "3", "0"]);
}

#[test]
fn what_is_too_large_is_told() {
    let large = Number::Finite(Exact { units: BigInt::from(10).pow(WHOLE_MAX), decimals: 0 });
    assert_eq!(large.to_numeric(), Err(NumericFault::Overflow));
    let fits = Number::Finite(Exact { units: BigInt::from(10).pow(WHOLE_MAX) - 1, decimals: 0 });
    assert_eq!(fits.to_numeric().unwrap().to_string().len(), WHOLE_MAX as usize);
}

#[test]
fn no_bytes_are_a_panic() {
    for first in 0..=255_u8 {
        for rest in [&[][..], &[0], &[255], &[1, 2, 3, 4], &[255, 255, 255, 255, 1], &[0, 0, 0, 0, 0], &[3, 5, 255]] {
            let bytes = [&[first], rest].concat();
            let number = Numeric::from_bytes(&bytes);
            if bytes.len() < 4 {
                assert!(!number.to_string().is_empty());
            }
            let _ = (key_of(&bytes), small(&bytes));
        }
    }
    assert_eq!(Numeric::from_bytes(&[]).to_string(), "NaN");
}

fn any_number() -> impl Strategy<Value = (i128, u32)> {
    let units = prop_oneof![
        (-1000_i64..1000).prop_map(i128::from),
        any::<i64>().prop_map(i128::from),
        any::<i128>().prop_map(|units| units % 10_i128.pow(36)),
        (any::<i32>(), 0_u32..27).prop_map(|(units, zeros)| i128::from(units) * 10_i128.pow(zeros)),
    ];
    (units, 0_u32..40)
}

proptest! {
    #[test]
    fn numbers_come_back_from_bytes_and_texts((units, decimals) in any_number()) {
        let number = Numeric::new(units, decimals);
        let exact = Exact { units: units.into(), decimals };
        prop_assert_eq!(number.number(), Number::Finite(exact.clone()));
        let kept = Number::Finite(exact).to_numeric().unwrap();
        prop_assert_eq!(kept.as_bytes(), number.as_bytes());
        let again = read(&number.to_string());
        prop_assert_eq!(again.as_bytes(), number.as_bytes());
        if let Some(found) = small(number.as_bytes()) {
            prop_assert_eq!(found, (units, decimals));
        } else {
            prop_assert!(units.unsigned_abs() > 10_u128.pow(30) || units == 0);
        }
    }

    #[test]
    fn bytes_are_in_the_order_of_numbers(left in any_number(), right in any_number()) {
        let exact = |(units, decimals): (i128, u32)| Exact { units: units.into(), decimals };
        let order = exact(left).compare(&exact(right));
        let [first, second] = [left, right].map(|(units, decimals)| Numeric::new(units, decimals));
        prop_assert_eq!(first.cmp(&second), order);
        prop_assert_eq!(first == second, order.is_eq());
        if order.is_ne() {
            prop_assert_eq!(first.as_bytes().cmp(second.as_bytes()), order);
        }
    }

    #[test]
    fn sums_and_products_are_exact(left in any_number(), right in any_number()) {
        let [first, second] = [left, right].map(|(units, decimals)| Numeric::new(units, decimals).number());
        let sum = first.plus(&second);
        let rest = sum.minus(&second).minus(&first);
        prop_assert_eq!(rest.to_numeric().unwrap(), read("0"));
        let Number::Finite(product) = first.times(&second) else { panic!("finite") };
        prop_assert_eq!(product.units, BigInt::from(left.0) * BigInt::from(right.0));
        if right.0 != 0 {
            let whole = first.times_within(&second).unwrap();
            let rest = first.remainder(&second).unwrap();
            let again = whole.times(&second).plus(&rest);
            prop_assert_eq!(again.to_numeric().unwrap(), first.to_numeric().unwrap());
        }
    }
}
