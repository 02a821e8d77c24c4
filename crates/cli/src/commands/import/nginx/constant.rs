//! nginx's constants: the only `set` of a variable, in a server and with a fixed text, is replaced wherever it is named.

use crate::commands::import::directive::Directive;

pub(super) fn replaced(block: &[Directive]) -> Vec<Directive> {
    let mut constants: Vec<(String, String)> = Vec::new();
    let is_only = |set: &&Directive| set.name == "set" && times(block, set.word(0)) == 1;
    for set in block.iter().filter(is_only) {
        let value = with(set.word(1), &constants);
        if !value.contains('$') {
            constants.push((set.word(0).to_owned(), value));
        }
    }
    block.iter().map(|directive| inside(directive, &constants)).collect()
}

/// Number of times that a variable is set.
fn times(block: &[Directive], variable: &str) -> usize {
    let of = |one: &Directive| usize::from(one.name == "set" && one.word(0) == variable) + times(one.inner(), variable);
    block.iter().map(of).sum()
}

fn inside(directive: &Directive, constants: &[(String, String)]) -> Directive {
    if directive.name == "set" {
        return directive.clone();
    }
    Directive {
        words: directive.words.iter().map(|word| with(word, constants)).collect(),
        block: directive.block.as_ref().map(|block| block.iter().map(|part| inside(part, constants)).collect()),
        ..directive.clone()
    }
}

fn with(word: &str, constants: &[(String, String)]) -> String {
    constants.iter().fold(word.to_owned(), |word, (variable, value)| with_value(&word, variable, value))
}

/// Replaces a variable (`$name`), which may be in braces, by its value. `$root` is not the beginning of `$root_dir`.
pub(super) fn with_value(word: &str, variable: &str, value: &str) -> String {
    let name = variable.trim_start_matches('$');
    let mut parts = word.split('$');
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let in_braces = part.strip_prefix('{').and_then(|rest| rest.strip_prefix(name)?.strip_prefix('}'));
        let is_longer = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        match in_braces.or_else(|| part.strip_prefix(name).filter(|rest| !is_longer(rest))) {
            Some(rest) => made.extend([value, rest]),
            None => made.extend(["$", part]),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::with_value;

    #[test]
    fn a_variable_ends_where_its_name_ends() {
        let of = |word| with_value(word, "$root", "/srv");
        assert_eq!(of("$root/a$root"), "/srv/a/srv");
        assert_eq!(of("${root}_a"), "/srv_a");
        assert_eq!(of("$root_dir$$uri"), "$root_dir$$uri");
    }
}
