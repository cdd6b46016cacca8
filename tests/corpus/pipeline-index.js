export const meta = { name: 'pipeline-index', description: 'Stages that look at the item and its index' }

const chapters = ['Start', 'Middle', 'End']
return await pipeline(
  chapters,
  (title, same, i) => agent(`Draft chapter ${i + 1}/${chapters.length}: ${title}`, { label: `draft ${i + 1}` }),
  (draft, title, i) => { if (i === 1) throw new Error('the middle is never right'); return draft },
  async (draft, title, i) => ({ title, i, draft, edited: await agent(`Edit: ${draft}`, { label: `edit ${i + 1}` }) }),
)
