//! nginx's constants: a `set` in a server with a fixed text is replaced wherever it is named.

use crate::commands::import::directive::Directive;

pub(super) fn replaced(block: &[Directive]) -> Vec<Directive> {
    let mut constants: Vec<(String, String)> = Vec::new();
    for set in block.iter().filter(|directive| directive.name == "set") {
        let value = with(set.word(1), &constants);
        if !value.contains('$') {
            constants.push((set.word(0).trim_start_matches('$').to_owned(), value));
        }
    }
    // `$root_dir` before `$root`.
    constants.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    block.iter().map(|directive| inside(directive, &constants)).collect()
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
    constants.iter().fold(word.to_owned(), |word, (name, value)| {
        word.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value)
    })
}
