//! Recipes: PHP of the server's own that boots a known application for request after request, without a change of the
//! application and without Composer (`php/recipes`). The shim runs one before the pool's script.
//!
//! Embedded like the async library (`library`), and for the same reasons.

use crate::library::time;
use std::ffi::{CStr, c_char};

/// A recipe: its name, the path by which PHP knows it, and its text.
struct Recipe {
    name: &'static CStr,
    path: &'static CStr,
    text: &'static str,
    /// It takes the snapshot itself, and then each request runs the pool's script as classic mode does. Without it the script,
    /// or the recipe in its place, asks for request after request.
    runs_script: bool,
}

static RECIPES: &[Recipe] = &[
    Recipe {
        name: c"symfony",
        path: c"/howdah:recipes/symfony.php",
        text: include_str!("../../../php/recipes/symfony.php"),
        runs_script: false,
    },
    Recipe {
        name: c"laravel",
        path: c"/howdah:recipes/laravel.php",
        text: include_str!("../../../php/recipes/laravel.php"),
        runs_script: false,
    },
    Recipe {
        name: c"wordpress",
        path: c"/howdah:recipes/wordpress.php",
        text: include_str!("../../../php/recipes/wordpress.php"),
        runs_script: true,
    },
];

/// The recipe of this name: its path, zero-terminated, its text, which is not, and the time of its last change, for
/// OPcache. All live as long as the process. False: there is none.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_recipe(
    name: *const c_char,
    path: *mut *const c_char,
    text: *mut *const c_char,
    text_len: *mut usize,
    changed: *mut u64,
) -> bool {
    // SAFETY: C passes a text that is valid for the length of the call.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(recipe) = RECIPES.iter().find(|recipe| recipe.name == name) else { return false };
    // SAFETY: the shim passes four valid places to write to (bridge.h).
    unsafe {
        path.write(recipe.path.as_ptr());
        text.write(recipe.text.as_ptr().cast());
        text_len.write(recipe.text.len());
        changed.write(time(recipe.text));
    }
    true
}

/// Whether requests run the pool's script after the recipe of this name, which takes the snapshot.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_recipe_runs_script(name: *const c_char) -> bool {
    // SAFETY: C passes a text that is valid for the length of the call.
    let name = unsafe { CStr::from_ptr(name) };
    RECIPES.iter().any(|recipe| recipe.name == name && recipe.runs_script)
}
