// Shared helpers live beside this file.
import { chunk } from './lib/chunk.mjs'

export const meta = { name: 'import-before', description: 'Imports a sibling' }

return await agent(`Look at ${chunk([1, 2, 3], 2).length} chunks`)
