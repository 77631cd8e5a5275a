//! Attacks, each with its near miss: what differs in one thing and must be granted. A check that
//! refuses everything fails here as well as one that refuses nothing.

mod fetched;
mod lists;
mod names;
mod path;
mod points;
mod profile;
mod responders;
