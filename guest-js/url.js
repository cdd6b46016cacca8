// `URL` and `URLSearchParams` of the URL Standard (https://url.spec.whatwg.org/), thin classes around the parser in
// crates/guest/src/url.rs: a URL is the text it serialises to, and its parts are read from that.
//
// Nothing here guards against a script that replaces intrinsics: whoever does it harms his own URLs alone.
(host) => {
  "use strict";

  const text = (value) => `${value}`.toWellFormed();

  // The parameters of a URL, and what has them follow it.
  let paramsOf, refresh;

  class URL {
    #href;
    #params;

    constructor(url, base) {
      const href = host.urlParse(text(url), base === undefined ? undefined : text(base));
      if (href === undefined) throw new TypeError(`Invalid URL: ${url}`);
      this.#href = href;
    }

    static canParse(url, base) {
      return host.urlParse(text(url), base === undefined ? undefined : text(base)) !== undefined;
    }
    static parse(url, base) {
      return URL.canParse(url, base) ? new URL(url, base) : null;
    }

    get href() { return this.#href; }
    set href(url) { this.#become(new URL(url).#href); }
    get origin() { return host.urlPart(this.#href, "origin"); }
    get searchParams() {
      this.#params ??= paramsOf(this);
      return this.#params;
    }
    toString() { return this.#href; }
    toJSON() { return this.#href; }

    #become(href) {
      this.#href = href;
      if (this.#params !== undefined) refresh(this.#params);
    }

    static {
      for (const part of ["protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]) {
        Object.defineProperty(URL.prototype, part, {
          get() { return host.urlPart(this.#href, part); },
          set(value) { this.#become(host.urlWith(this.#href, part, text(value))); },
          enumerable: true,
          configurable: true,
        });
      }
      for (const name of ["href", "origin", "searchParams", "toString", "toJSON"]) {
        Object.defineProperty(URL.prototype, name, { enumerable: true });
      }
    }
  }

  class URLSearchParams {
    #pairs = [];
    #url;

    constructor(init = "") {
      if (typeof init === "object" && init !== null) {
        if (init[Symbol.iterator] === undefined) init = Object.entries(init);
        for (const pair of init) {
          const both = [...pair];
          if (both.length !== 2) throw new TypeError("URLSearchParams takes pairs of a name and a value");
          this.#pairs.push(both.map(text));
        }
      } else {
        this.#pairs = host.formParse(text(init).replace(/^\?/, ""));
      }
    }

    static {
      paramsOf = (url) => {
        const params = new URLSearchParams(url.search);
        params.#url = url;
        return params;
      };
      refresh = (params) => {
        params.#pairs = host.formParse(params.#url.search.replace(/^\?/, ""));
      };
    }
    // What is changed here is changed in the URL.
    #changed() {
      if (this.#url !== undefined) this.#url.search = this.toString();
    }

    get size() { return this.#pairs.length; }
    append(name, value) {
      this.#pairs.push([text(name), text(value)]);
      this.#changed();
    }
    delete(name, value) {
      const other = ([n, v]) => n !== text(name) || (value !== undefined && v !== text(value));
      this.#pairs = this.#pairs.filter(other);
      this.#changed();
    }
    get(name) { return this.#pairs.find(([n]) => n === text(name))?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([n]) => n === text(name)).map(([, v]) => v); }
    has(name, value) {
      return this.#pairs.some(([n, v]) => n === text(name) && (value === undefined || v === text(value)));
    }
    set(name, value) {
      const found = this.#pairs.find(([n]) => n === text(name));
      if (found === undefined) return this.append(name, value);
      found[1] = text(value);
      this.#pairs = this.#pairs.filter((pair) => pair === found || pair[0] !== found[0]);
      this.#changed();
    }
    sort() {
      this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed();
    }
    forEach(callback, self) {
      for (const [name, value] of this) callback.call(self, value, name, this);
    }
    *entries() { for (const [name, value] of this.#pairs) yield [name, value]; }
    *keys() { for (const [name] of this.#pairs) yield name; }
    *values() { for (const [, value] of this.#pairs) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return host.formWrite(this.#pairs); }
  }

  return { URL, URLSearchParams };
}
