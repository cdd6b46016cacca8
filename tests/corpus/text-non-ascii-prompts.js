export const meta = { name: 'text-non-ascii-prompts', description: 'Box drawing, arrows, dashes “and quotes”' }

// ═══════════ Konfiguration ═══════════
const SECTIONS = ['Zusammenfassung', 'Résumé', '摘要']
const brief = `┌──────────┐
│  Briefing │ → ${SECTIONS.length} × §
└──────────┘ “quoted” – ‘single’ … ≤ ≥ ≠`
const out = {}
for (const s of SECTIONS) out[s] = await agent(`${brief}\n▶ ${s}`, { label: s })
return out
