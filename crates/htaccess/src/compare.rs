//! Comparisons of texts, and of the numbers in them.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    pub(crate) fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }

    pub(crate) fn of_letters(letters: &str) -> Option<Self> {
        Some(match letters {
            "lt" => Self::Less,
            "le" => Self::LessOrEqual,
            "eq" => Self::Equal,
            "ne" => Self::NotEqual,
            "gt" => Self::Greater,
            "ge" => Self::GreaterOrEqual,
            _ => return None,
        })
    }
}

/// The number at the start of a text, as C's `atoi` reads it.
pub(crate) fn number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text.first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let digits = digits.iter().take_while(|b| b.is_ascii_digit());
    sign * digits.fold(0_i64, |sum, b| sum.saturating_mul(10).saturating_add(i64::from(b - b'0')))
}
