export const meta = {
  name: '<img src=x onerror="window.hacked = 1">',
  description: '</script><script>window.hacked = 2</script> & "quotes"',
}

const labels = [
  `<img src=x onerror="window.hacked = 3">`,
  `javascript:window.hacked=4`,
  "\u202Egnp.exe\u202C reversed",
  "שלום עולם, agent two",
  "👩‍👩‍👧‍👦 family 🇩🇪 flag 👍🏽",
  "a\u0000b\u0007c\u001b[31mred",
  "line one\nline two",
  "W".repeat(10_240),
  "   ",
]
phase(`<b onmouseover="window.hacked = 5">phase</b>`)
for (const label of labels) log(label)
await parallel(labels.map((label) => () => agent(`fail:${label}`, { label: label.slice(0, 9000) })))
return { "<img src=x onerror=window.hacked=6>": labels, __proto__: null, nested: { "<script>": "</script><svg onload=window.hacked=7>" } }
