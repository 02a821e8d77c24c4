//! Limits on the cost of a file. The author of an .htaccess file is trusted with a part of a site, but not with the
//! server.

/// Maximum length of a file in bytes.
pub(crate) const FILE: usize = 1024 * 1024;
/// Maximum number of directives and tags of a file.
pub(crate) const DIRECTIVES: usize = 10_000;
/// Maximum nesting of sections.
pub(crate) const DEPTH: usize = 32;
/// Maximum number of directories between the root and a file.
pub(crate) const DIRECTORIES: usize = 64;
/// Maximum length of a path in the file system, as in Linux.
pub(crate) const FILENAME: usize = 4095;
/// Maximum nesting of subrequests, as in Apache.
pub(crate) const SUBREQUESTS: usize = 10;
/// Maximum memory of a file's compiled patterns in bytes.
pub(crate) const PATTERNS: usize = 32 * 1024 * 1024;
/// Size limits tried for a pattern; the first that suffices is charged.
pub(crate) const PATTERN_STEPS: [usize; 3] = [8 * 1024, 64 * 1024, 512 * 1024];
/// Maximum length of a pattern in bytes.
pub(crate) const PATTERN: usize = 8 * 1024;
/// Maximum length of a subject in bytes; longer ones are truncated.
pub(crate) const SUBJECT: usize = 16 * 1024;
/// Maximum number of backtracking steps of a match whose pattern has no linear-time engine.
pub(crate) const BACKTRACKS: usize = 50_000;
/// Effort of one request: the cost of its matches and file tests, roughly in bytes read; about 0.1 s of processor time.
pub(crate) const EFFORT: u64 = 16 * 1024 * 1024;
/// The part of [`EFFORT`] that a thread with other connections may spend: a few milliseconds.
pub(crate) const SHARED_EFFORT: u64 = 512 * 1024;
/// Effort of a match, in addition to the bytes read.
pub(crate) const MATCH: u64 = 512;
/// Effort of looking up a path.
pub(crate) const LOOKUP_EFFORT: u64 = 1024;
/// Effort of a directive that sets a value.
pub(crate) const CHANGE: u64 = 256;
/// Maximum number of `[N]` rounds in one pass through the rules.
pub(crate) const ROUNDS: usize = 1_000;
/// Maximum length of a rewritten path, and of any text that a directive produces.
pub(crate) const EXPANDED: usize = 16 * 1024;
/// Maximum number of parts of an expression.
pub(crate) const EXPRESSION: usize = 500;
/// Maximum number of environment variables that directives set for a request.
pub(crate) const VARIABLES: usize = 500;
/// Maximum number of cached files.
pub(crate) const MAX_CACHED: usize = 4096;
