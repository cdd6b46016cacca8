export const meta = { name: 'schema-bounds', description: 'Exactly three ideas, scored' }

const IDEAS = {
  type: 'object',
  properties: {
    ideas: {
      type: 'array',
      minItems: 3,
      maxItems: 3,
      items: {
        type: 'object',
        properties: {
          name: { type: 'string', maxLength: 6 },
          effort: { type: 'integer', minimum: 2, maximum: 8 },
          tags: { type: 'array', items: { enum: ['ui', 'api', 'infra'] }, maxItems: 1 },
        },
        required: ['name', 'effort'],
        additionalProperties: false,
      },
    },
  },
  required: ['ideas'],
}
const { ideas } = await agent('Propose three ideas for onboarding.', { schema: IDEAS })
const scored = await parallel(ideas.map((idea) => () =>
  agent(`Score "${idea.name}" from 0 to 10.`, {
    label: `score ${idea.name}`,
    schema: { type: 'object', properties: { score: { type: 'number', exclusiveMinimum: 0, maximum: 10 } }, required: ['score'] },
  }).then((s) => ({ ...idea, score: s ? s.score : 0 }))))
return scored.sort((a, b) => b.score - a.score || a.name.localeCompare(b.name))
