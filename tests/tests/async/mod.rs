//! Async mode: many requests at once in each worker, none of which may notice the others.

mod answers;
mod connections;
mod databases;
mod difference;
mod extensions;
mod isolation;
mod library;
mod lifecycle;
mod pool;
mod waits;
