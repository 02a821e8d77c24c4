//! Packs the relocations of `howdah`: 1.3 MB of 27. Loaders know the format since glibc 2.36 (Debian 12).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
}
