use super::*;

fn compiled(text: &str) -> Pattern {
    Pattern::new(text, false, &mut PatternBudget::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn patterns_are_read_as_pcre_reads_them() {
    // Pattern, matching texts, texts that do not match.
    for (pattern, yes, no) in [
        (r"^index\.php$", "index.php", "index_php"),
        (r"(\<|%3C).*script.*(\>|%3E)", "<script>", "script"),
        (r"a{b", "a{b", "ab"),
        (r"a{,3}b", "a{,3}b", "aab"),
        (r"a{2}b", "aab", "ab"),
        (r"a{2,}$", "xaaa", "a"),
        ("[[(]x[]y]z", "(x]z", "xyz"),
        (r"^[\w-.]+$", "a-b.c", "a b"),
        (r"^[a&&b~~c--]+$", "&~-", "x"),
        (r"^[[:alnum:]-]+$", "a-1", "_"),
        (r"a\ b\/c\%\_\:", "a b/c%_:", "ab"),
        (r"^(?!admin/)", "user/", "admin/"),
        (r"(\w+)-\1", "ab-ab", "ab-cd"),
        (r"^a++b$", "aab", "aac"),
        (r"\Qa.b\E+", "a.bb", "axb"),
        (r"^\h+$", " \t", "h"),
        ("^a.b$", "a\nb", "ab"),
        ("x$", "x", "x\n"),
        ("]}", "]}", "]"),
        (r"(?:a|b)?c\.(gif|jpe?g|png)$", "c.jpeg", "c.jpg.php"),
    ] {
        let (found, mut budget) = (compiled(pattern), StepBudget::default());
        assert!(found.is_in(yes.as_bytes(), &mut budget).unwrap(), "{pattern} on {yes:?}");
        assert!(!found.is_in(no.as_bytes(), &mut budget).unwrap(), "{pattern} on {no:?}");
    }
    assert!(Pattern::new("(", false, &mut PatternBudget::default()).unwrap_err().contains("`(`"));
}

#[test]
fn both_engines_see_bytes() {
    for pattern in ["^(.)(é)(.*)$", "^(?=.)(.)(é)(.*)$"] {
        let found = compiled(pattern).find(b"\xff\xc3\xa9x\xfe", &mut StepBudget::default()).unwrap().unwrap();
        let groups = [found.group(1), found.group(2), found.group(3), found.group(9)];
        assert_eq!(groups, [&b"\xff"[..], b"\xc3\xa9", b"x\xfe", b""], "{pattern}");
    }
}

#[test]
fn a_match_that_backtracks_endlessly_fails() {
    let pattern = compiled(r"^(?=(a+)+$)(a|aa)+\1$");
    assert_eq!(pattern.find(&[b'a'; 60], &mut StepBudget::default()).err(), Some(BudgetExceeded));
    let cheap = compiled("x");
    let mut budget = StepBudget { left: 1000, shared: false };
    assert_eq!((0..100).find_map(|_| cheap.is_in(b"yyy", &mut budget).err()), Some(BudgetExceeded));
}

#[test]
fn the_patterns_of_a_file_have_a_bound() {
    let mut room = PatternBudget::default();
    assert!(Pattern::new("(a{1000}){1000}", false, &mut room).is_err());
    assert!(Pattern::new("(?=x)((a{1000}){100}){1000}", false, &mut room).is_err());
    assert!((0..100_000).any(|_| Pattern::new("[a-z]{50}", false, &mut room).is_err()));
}

#[test]
fn replacing() {
    let mut budget = StepBudget::default();
    let pattern = compiled("a(.)");
    let with = |found: &Captures| [b"<", found.group(1), b">"].concat();
    assert_eq!(pattern.replace(b"xabyac", false, &mut budget, with).unwrap().unwrap(), b"x<b>yac");
    assert_eq!(pattern.replace(b"xabyac", true, &mut budget, with).unwrap().unwrap(), b"x<b>y<c>");
    assert_eq!(pattern.replace(b"x", true, &mut budget, with).unwrap(), None);
    let empty = compiled("q*").replace(b"ab", true, &mut budget, |_| b"-".to_vec()).unwrap().unwrap();
    assert_eq!(empty, b"-a-b");
}
