export const meta = { name: 'url-build', description: 'Builds links from parts' }

const base = 'https://example.com/api/v1/'
const pages = ['users', '../v2/groups', '/health']
const urls = pages.map((p, i) => {
  const u = new URL(p, base)
  u.searchParams.set('page', String(i + 1))
  u.searchParams.append('q', 'ü & more')
  return u.toString()
})
const u = new URL('https://user:pw@例え.jp:8080/a/b?x=1&x=2#top')
const parts = [u.protocol, u.username, u.host, u.port, u.pathname, u.search, u.hash, u.origin, u.searchParams.getAll('x')]
const text = await agent(`Fetch ${urls[0]}`, { label: new URL(urls[0]).pathname.split('/').pop() })
return { urls, parts, text, json: JSON.stringify({ u }), can: [URL.canParse('nope'), URL.canParse('a:b')] }
