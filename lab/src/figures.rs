//! Formats figures for people.

/// Formats a number with a sensible number of digits and thousands separators.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    if value.abs() < 9.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

/// Formats bytes.
pub fn bytes(value: f64) -> String {
    const STEPS: [(&str, f64); 3] = [("GiB", 1073741824.0), ("MiB", 1048576.0), ("KiB", 1024.0)];
    for (unit, size) in STEPS {
        if value >= size {
            let amount = value / size;
            return if amount < 9.95 { format!("{amount:.1} {unit}") } else { format!("{amount:.0} {unit}") };
        }
    }
    format!("{value:.0} B")
}

/// Formats microseconds.
pub fn time(us: f64) -> String {
    if !us.is_finite() {
        "–".into()
    } else if us < 1000.0 {
        format!("{us:.0} µs")
    } else if us < 9950.0 {
        format!("{:.2} ms", us / 1000.0)
    } else if us < 999_500.0 {
        format!("{:.1} ms", us / 1000.0)
    } else {
        format!("{:.2} s", us / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(number(1234567.8), "1 234 568");
        assert_eq!(number(999.0), "999");
        assert_eq!(number(2.345), "2.3");
        assert_eq!(number(-1500.0), "-1 500");
        assert_eq!(number(f64::NAN), "–");
        assert_eq!(bytes(533_504.0), "521 KiB");
        assert_eq!(bytes(13.0), "13 B");
        assert_eq!(time(999.0), "999 µs");
        assert_eq!(time(1234.0), "1.23 ms");
        assert_eq!(time(2_500_000.0), "2.50 s");
    }
}
