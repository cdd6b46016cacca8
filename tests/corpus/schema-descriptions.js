export const meta = { name: 'schema-descriptions', description: 'A schema that explains itself' }

const BUG = {
  type: 'object',
  description: 'One bug, as a maintainer would file it',
  properties: {
    title: { type: 'string', description: 'Imperative, under 80 characters', maxLength: 80, minLength: 10 },
    severity: { type: 'integer', description: '1 is cosmetic, 5 loses data', minimum: 1, maximum: 5 },
    confidence: { type: 'number', minimum: 0, maximum: 0.9 },
    steps: { type: 'array', description: 'How to see it', items: { type: 'string' }, minItems: 1, maxItems: 8 },
    workaround: { type: ['string', 'null'], description: 'null if there is none' },
  },
  required: ['title', 'severity', 'steps'],
}
const bug = await agent('Reproduce the crash in the importer and file it.', { label: 'file', schema: BUG })
if (!bug) return { filed: false }
return { filed: true, bug, urgent: bug.severity >= 4 }
