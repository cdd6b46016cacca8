// Saved by an editor on Windows.
export const meta = {
  name: 'header-bom',
  description: 'Byte order mark, and lines that end as on Windows',
}

const lines = `first
second`
log(`There are ${lines.split('\n').length} lines`)
const answer = await agent(`Count the characters of:
${lines}`, { label: 'count' })
return { answer, length: lines.length }
