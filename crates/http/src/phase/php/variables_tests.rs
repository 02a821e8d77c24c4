//! Tests of `variables`.
