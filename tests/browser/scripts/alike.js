export const meta = { name: "alike", description: "Twelve agents fail for one reason, one for another" }

phase("Try")
const answers = await parallel(Array.from({ length: 13 }, (_, i) => () => agent(i === 4 ? "fail:no answer" : "fail:exit status 1: not signed in", { label: `try ${i + 1}` })))
return answers.filter(Boolean).length
