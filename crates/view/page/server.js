// What the page asks the server for. The token is in the address's fragment at first, which browsers send nowhere;
// it is kept for this tab alone and sent in a header.

const HERE = new URL("../", import.meta.url)
const KEY = `fanfold-token ${HERE.pathname}`
let token = sessionStorage.getItem(KEY)

/** Takes the token out of the address, so that it is not copied along with it. */
export function takeToken() {
  const fragment = new URLSearchParams(location.hash.slice(1))
  if (!fragment.has("token")) return
  token = fragment.get("token")
  sessionStorage.setItem(KEY, token)
  fragment.delete("token")
  history.replaceState(null, "", `#${fragment}`)
}

/** After how many milliseconds an answer no longer counts as coming. */
const PATIENCE = 12_000

export class Refused extends Error {}
export class Gone extends Error {}

/** An answer of the server to a question about runs. */
export async function ask(path, options = {}) {
  const headers = { ...options.headers }
  if (token) headers.Authorization = `Bearer ${token}`
  const response = await fetch(new URL(`api/${path}`, HERE), { cache: "no-store", credentials: "same-origin", ...options, headers })
  if (response.status === 401) throw new Refused("This page needs the token that its address ends with.")
  if (response.status === 404 || response.status === 410) throw new Gone("This run is no longer here.")
  if (!response.ok) throw new Error(`The server answered ${response.status}.`)
  return response
}

export const runs = async () => (await ask("runs", { signal: AbortSignal.timeout(PATIENCE) })).json()
export const about = async (key) => (await ask(`runs/${key}`)).json()
/** The value as it was written: numbers of any size, in the script's order. */
export const value = async (key) => (await ask(`runs/${key}/value`)).text()
export const cancel = (key) => ask(`runs/${key}/cancel`, { method: "POST", headers: { "X-Fanfold-View": "1" } })
