//! Limits on the cost of a file. The author of an .htaccess file is trusted with a part of a site, not with the server.

/// Bytes of a file.
pub(crate) const FILE: usize = 1024 * 1024;
/// Directives and tags of a file.
pub(crate) const DIRECTIVES: usize = 10_000;
/// Sections within each other.
pub(crate) const DEPTH: usize = 32;
/// Directories on the way from the root to a file.
pub(crate) const DIRECTORIES: usize = 64;
/// Bytes of a path in the file system, as Linux has it.
pub(crate) const FILENAME: usize = 4095;
/// Requests within each other, as under Apache.
pub(crate) const SUBREQUESTS: usize = 10;
/// Bytes that the patterns of a file may take when they are compiled.
pub(crate) const PATTERNS: usize = 32 * 1024 * 1024;
/// Size limits of one pattern: the first that suffices is charged.
pub(crate) const PATTERN_STEPS: [usize; 3] = [8 * 1024, 64 * 1024, 512 * 1024];
/// Bytes of a pattern.
pub(crate) const PATTERN: usize = 8 * 1024;
/// Bytes of what a pattern is matched against.
pub(crate) const SUBJECT: usize = 16 * 1024;
/// Steps back that a match may take, of a pattern that cannot be matched in linear time.
pub(crate) const BACKTRACKS: usize = 50_000;
/// Effort of one request: the cost of its matches and file tests, about in bytes read; some 0.1 s of a processor.
pub(crate) const EFFORT: u64 = 16 * 1024 * 1024;
/// The part of [`EFFORT`] that a thread with other connections may spend: some milliseconds.
pub(crate) const SHARED_EFFORT: u64 = 512 * 1024;
/// Effort of a match, in addition to the bytes that it reads.
pub(crate) const MATCH: u64 = 512;
/// Effort of looking up a path.
pub(crate) const LOOKUP_EFFORT: u64 = 1024;
/// Effort of a directive that sets something.
pub(crate) const CHANGE: u64 = 256;
/// Rounds of `[N]` together, for one pass through the rules.
pub(crate) const ROUNDS: usize = 1_000;
/// Bytes of a rewritten path and of a text that a directive makes.
pub(crate) const EXPANDED: usize = 16 * 1024;
/// Parts of an expression.
pub(crate) const EXPRESSION: usize = 500;
/// Names of environment variables that directives set for a request.
pub(crate) const VARIABLES: usize = 500;
/// Files that are kept.
pub(crate) const MAX_CACHED: usize = 4096;
