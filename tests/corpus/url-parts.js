export const meta = { name: 'url-parts', description: 'Groups links by host' }

const links = args.links
const byHost = {}
for (const link of links) {
  let url
  try { url = new URL(link) } catch { log(`not a URL: ${link}`); continue }
  url.hash = ''
  url.searchParams.delete('utm_source')
  ;(byHost[url.hostname] ??= []).push(url.href)
}
const hosts = Object.keys(byHost).sort()
const notes = await parallel(hosts.map((h) => () => agent(`Read these pages of ${h}:\n${byHost[h].join('\n')}`, { label: h })))
return { byHost, notes }
