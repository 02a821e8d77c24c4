//! Async mode: many concurrent requests in each worker, isolated from each other.

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
