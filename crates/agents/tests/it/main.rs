//! The providers as an engine uses them.

#[cfg(test)]
#[cfg(target_os = "linux")]
mod acp;
#[cfg(test)]
#[cfg(unix)]
mod command;
#[cfg(test)]
mod dry_run;
#[cfg(test)]
mod http;
#[cfg(test)]
mod scripted;
