export const meta = { name: 'judge-panel', description: 'Several drafts, judges, and a synthesis of the best' }

const STYLES = { terse: 'Be terse.', story: 'Tell it as a story.', list: 'Use bullets.' }
const drafts = await parallel(Object.entries(STYLES).map(([style, how]) => () =>
  agent(`Explain the outage. ${how}`, { label: `draft:${style}` }).then((text) => ({ style, text }))))
const judged = await parallel(drafts.map((d) => async () => {
  const marks = await Promise.all([1, 2].map((j) => agent(`Judge ${j}: mark this from 0 to 100.\n\n${d.text}`, {
    label: `judge${j}:${d.style}`,
    schema: { type: 'object', properties: { mark: { type: 'integer', minimum: 10 * j, maximum: 100 } }, required: ['mark'] },
  })))
  return { ...d, mark: marks.reduce((s, m) => s + (m?.mark ?? 0), 0) / marks.length }
}))
judged.sort((x, y) => y.mark - x.mark || (x.style < y.style ? -1 : 1))
const [best, ...others] = judged
return { best: best.style, marks: judged.map((j) => j.mark), final: await agent(`Improve this:\n${best.text}\nwith ideas from:\n${others.map((o) => o.text).join('\n')}`, { label: 'final' }) }
