export const meta = { name: 'header-one-line', description: 'All on one line', phases: [{ title: 'A' }, { title: 'B' }] }; const q = 'x';
return await pipeline([1, 2], (n) => agent(`A${n}`, { label: `A${n}`, phase: 'A' }), (prev, n) => agent(`B${n} after ${prev}`, { label: `B${n}${q}`, phase: 'B' }))
