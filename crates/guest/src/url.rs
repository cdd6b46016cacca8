//! URLs by the URL Standard; the classes that scripts see are in `guest-js/url.js`.
//!
//! A URL crosses as the text it serialises to.

use rquickjs::{Ctx, Function, Object, Result};
use url::{Url, form_urlencoded, quirks};

/// Adds the functions that the JavaScript half calls. Their texts are well-formed.
pub(crate) fn add_to<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    host.set("urlParse", Function::new(ctx.clone(), parse)?)?;
    host.set("urlPart", Function::new(ctx.clone(), part)?)?;
    host.set("urlWith", Function::new(ctx.clone(), with)?)?;
    host.set("formParse", Function::new(ctx.clone(), form_parse)?)?;
    host.set("formWrite", Function::new(ctx.clone(), form_write)?)
}

/// `host.urlParse(url, base?)`: the URL, or `undefined` for what is none.
fn parse(url: String, base: Option<String>) -> Option<String> {
    let base = match base {
        Some(base) => Some(Url::parse(&base).ok()?),
        None => None,
    };
    Url::options().base_url(base.as_ref()).parse(&url).ok().map(Into::into)
}

/// `host.urlPart(href, name)`: a part of a URL, as the attributes of the class `URL` are called.
fn part(href: String, name: String) -> String {
    let Ok(url) = Url::parse(&href) else { return String::new() };
    match name.as_str() {
        "origin" => return quirks::origin(&url),
        "protocol" => quirks::protocol(&url),
        "username" => quirks::username(&url),
        "password" => quirks::password(&url),
        "host" => quirks::host(&url),
        "hostname" => quirks::hostname(&url),
        "port" => quirks::port(&url),
        "pathname" => quirks::pathname(&url),
        "search" => quirks::search(&url),
        "hash" => quirks::hash(&url),
        _ => "",
    }
    .to_owned()
}

/// `host.urlWith(href, name, value)`: the URL with another part. A value that does not fit changes nothing.
fn with(href: String, name: String, value: String) -> String {
    let Ok(mut url) = Url::parse(&href) else { return href };
    let _ = match name.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Ok(()),
    };
    url.into()
}

/// `host.formParse(text)`: the pairs of `application/x-www-form-urlencoded`.
fn form_parse(text: String) -> Vec<Vec<String>> {
    form_urlencoded::parse(text.as_bytes())
        .map(|(name, value)| vec![name.into_owned(), value.into_owned()])
        .collect()
}

/// `host.formWrite(pairs)`.
fn form_write(pairs: Vec<Vec<String>>) -> String {
    let pairs = pairs.iter().filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}
