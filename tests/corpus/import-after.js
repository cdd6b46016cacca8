export const meta = { name: 'import-after', description: 'Imports a sibling' }

import { SCHEMA } from './schemas.js'
import * as prompts from "./prompts.js"

return await agent(prompts.first, { schema: SCHEMA })
