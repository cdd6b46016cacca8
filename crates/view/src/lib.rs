//! A page that shows runs as they happen, and those that have ended.
//!
//! A service mounts [`View::router`]; each run that is to be seen is started with [`View::watch`] as an observer:
//!
//! ```
//! use fanfold::{Engine, StartRequest};
//! use fanfold_view::{About, View, ViewOptions};
//!
//! # async fn example(engine: Engine) -> Result<(), Box<dyn std::error::Error>> {
//! let view = View::new(ViewOptions::default());
//! let app: axum::Router = axum::Router::new().nest("/runs", view.router());
//!
//! let script = "return await agent('hello')";
//! let watch = view.watch(About::default().script(script));
//! let run = engine.start(StartRequest::new(script).observe(watch.clone())).await?;
//! println!("look at /runs/#token={}", view.token().unwrap_or_default());
//! let result = run.result().await;
//! run.dispose().await;
//! watch.finish(&run, &result);
//! # let _ = app;
//! # Ok(())
//! # }
//! ```
//!
//! The page is told the lines that `fanfold run --json` prints, as server-sent events, and folds them with the
//! same [`RunView`](fanfold_types::RunView) as everybody else, compiled to WebAssembly.
//!
//! # Layout
//! - [`View`], [`ViewOptions`], [`About`], [`Watch`]: what a service holds
//! - `live`: the lines of a run that happens in this process; `files`: those of runs that are on disk
//! - `runs`: both, under one number; `summary`: what a list says of them
//! - `router`: what the page asks for; `stream`: lines as server-sent events; `cursor`: how far a reader of them is;
//!   `tail`: the lines of a file that may still change
//! - `guard`: who may ask; `assets`: the page itself
//! - [`Server`]: the router on a port of its own
#![forbid(unsafe_code)]

mod assets;
mod cursor;
mod files;
mod guard;
mod live;
mod router;
mod runs;
mod server;
mod stream;
mod summary;
mod tail;
mod view;

pub use files::FilesError;
pub use live::Watch;
pub use server::Server;
pub use view::{About, View, ViewOptions};
