export const meta = {
  name: 'options-agent-type',
  description: 'Explores with one kind of agent and reviews with another',
}

const areas = ['parser', 'printer']
const maps = await parallel(areas.map((area) => () => agent(`Map the ${area}: entry points and data flow.`, {
  agentType: 'Explore',
  label: 'map ' + area,
})))
const reviews = await parallel(maps.map((map, i) => () => agent(`Review this map of the ${areas[i]}:\n${map}`, {
  agentType: 'code-reviewer',
  effort: 'high',
  model: 'opus',
  label: 'review ' + areas[i],
})))
return areas.map((area, i) => ({ area, map: maps[i], review: reviews[i] }))
