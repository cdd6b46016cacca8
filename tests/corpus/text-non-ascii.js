export const meta = {
  name: 'text-non-ascii',
  description: 'Übersetzt — 翻訳する — переводит 🌍',
  phases: [{ title: 'Übersetzen' }, { title: '確認' }],
}

const sprachen = { de: 'Grüße', ja: '日本語', ru: 'Привет', emoji: '👩‍🔬🚀' }
phase('Übersetzen')
const texte = await parallel(Object.entries(sprachen).map(([k, v]) => () => agent(`Übersetze „${v}“ → ${k}…`, { label: `${k} · ${v}` })))
phase('確認')
const ok = await agent('これで良いですか？', { label: '確認✓' })
return { texte, ok, länge: [...sprachen.emoji].length }
