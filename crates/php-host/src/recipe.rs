//! Recipes: PHP code of the server that boots a known application once for many requests, without changes to the
//! application and without Composer (`php/recipes`). The shim runs one before the pool's script. The crate `detect` has
//! the rest of the knowledge about them.
//!
//! Embedded like the async library (`library`), and for the same reasons.

use crate::library::time;
use howdah_detect::Recipe;
use std::ffi::{CStr, c_char};

/// A recipe's PHP: its name, the path under which PHP knows it, and its text.
struct Embedded {
    name: &'static str,
    path: &'static CStr,
    text: &'static str,
}

static EMBEDDED: &[Embedded] = &[
    Embedded {
        name: "symfony",
        path: c"/howdah:recipes/symfony.php",
        text: include_str!("../../../php/recipes/symfony.php"),
    },
    Embedded {
        name: "laravel",
        path: c"/howdah:recipes/laravel.php",
        text: include_str!("../../../php/recipes/laravel.php"),
    },
    Embedded {
        name: "wordpress",
        path: c"/howdah:recipes/wordpress.php",
        text: concat!(
            include_str!("../../../php/recipes/wordpress.php"),
            "?>",
            include_str!("../../../php/recipes/wordpress/blocks.php")
        ),
    },
    Embedded {
        name: "drupal",
        path: c"/howdah:recipes/drupal.php",
        text: include_str!("../../../php/recipes/drupal.php"),
    },
];

/// Returns the recipe with this name: its path, zero-terminated; its text, which is not; and a modification
/// time for OPcache. All live as long as the process. Returns false if there is none.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_recipe(
    name: *const c_char,
    path: *mut *const c_char,
    text: *mut *const c_char,
    text_len: *mut usize,
    changed: *mut u64,
) -> bool {
    // SAFETY: C passes a text that is valid for the duration of the call.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(recipe) = EMBEDDED.iter().find(|recipe| name.to_bytes() == recipe.name.as_bytes()) else { return false };
    // SAFETY: the shim passes four valid pointers to write to (bridge.h).
    unsafe {
        path.write(recipe.path.as_ptr());
        text.write(recipe.text.as_ptr().cast());
        text_len.write(recipe.text.len());
        changed.write(time(recipe.text));
    }
    true
}

/// `true` if requests run the pool's script after the recipe with this name, which takes the snapshot.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_recipe_runs_script(name: *const c_char) -> bool {
    // SAFETY: C passes a text that is valid for the duration of the call.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str().ok().and_then(Recipe::named).is_some_and(|recipe| recipe.takes_snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_detect::RECIPES;

    #[test]
    fn each_recipe_has_its_php_and_each_php_its_recipe() {
        let known: Vec<_> = RECIPES.iter().map(|recipe| recipe.name).collect();
        let embedded: Vec<_> = EMBEDDED.iter().map(|recipe| recipe.name).collect();
        assert_eq!(known, embedded);
        for recipe in EMBEDDED {
            let path = recipe.path.to_str().unwrap_or_default();
            assert_eq!(path, format!("/howdah:recipes/{}.php", recipe.name));
        }
    }
}
