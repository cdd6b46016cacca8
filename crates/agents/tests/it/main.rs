//! The providers as an engine uses them.

#[cfg(test)]
#[cfg(unix)]
mod command;
#[cfg(test)]
mod dry_run;
#[cfg(test)]
mod http;
#[cfg(test)]
mod scripted;
