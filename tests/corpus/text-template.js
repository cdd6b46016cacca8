export const meta = { name: 'text-template', description: 'A long prompt as a template' }

const project = args.project
const PROMPT = (role, part) => `# Role
You are the ${role} of "${project.name}" (${project.tags.map((t) => `#${t}`).join(' ')}).

## Part
${part ?? '(none)'}

## Rules
1. Rule 1: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
2. Rule 2: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
3. Rule 3: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
4. Rule 4: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
5. Rule 5: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
6. Rule 6: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
7. Rule 7: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
8. Rule 8: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
9. Rule 9: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
10. Rule 10: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
11. Rule 11: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
12. Rule 12: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
13. Rule 13: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
14. Rule 14: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
15. Rule 15: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
16. Rule 16: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
17. Rule 17: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
18. Rule 18: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
19. Rule 19: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
20. Rule 20: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
21. Rule 21: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
22. Rule 22: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
23. Rule 23: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
24. Rule 24: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
25. Rule 25: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
26. Rule 26: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
27. Rule 27: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
28. Rule 28: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
29. Rule 29: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
30. Rule 30: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
31. Rule 31: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
32. Rule 32: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
33. Rule 33: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
34. Rule 34: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
35. Rule 35: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
36. Rule 36: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
37. Rule 37: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
38. Rule 38: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
39. Rule 39: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
40. Rule 40: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
41. Rule 41: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
42. Rule 42: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
43. Rule 43: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
44. Rule 44: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
45. Rule 45: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
46. Rule 46: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
47. Rule 47: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
48. Rule 48: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
49. Rule 49: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
50. Rule 50: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
51. Rule 51: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
52. Rule 52: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
53. Rule 53: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
54. Rule 54: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
55. Rule 55: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
56. Rule 56: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
57. Rule 57: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
58. Rule 58: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
59. Rule 59: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
60. Rule 60: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
61. Rule 61: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
62. Rule 62: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
63. Rule 63: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
64. Rule 64: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
65. Rule 65: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
66. Rule 66: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
67. Rule 67: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
68. Rule 68: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
69. Rule 69: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
70. Rule 70: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
71. Rule 71: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
72. Rule 72: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
73. Rule 73: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
74. Rule 74: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
75. Rule 75: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
76. Rule 76: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
77. Rule 77: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
78. Rule 78: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
79. Rule 79: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
80. Rule 80: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
81. Rule 81: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
82. Rule 82: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
83. Rule 83: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
84. Rule 84: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
85. Rule 85: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
86. Rule 86: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
87. Rule 87: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
88. Rule 88: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
89. Rule 89: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
90. Rule 90: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
91. Rule 91: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
92. Rule 92: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
93. Rule 93: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
94. Rule 94: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
95. Rule 95: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
96. Rule 96: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
97. Rule 97: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
98. Rule 98: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
99. Rule 99: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
100. Rule 100: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
101. Rule 101: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
102. Rule 102: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
103. Rule 103: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
104. Rule 104: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
105. Rule 105: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
106. Rule 106: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
107. Rule 107: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
108. Rule 108: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
109. Rule 109: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
110. Rule 110: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
111. Rule 111: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
112. Rule 112: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
113. Rule 113: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
114. Rule 114: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
115. Rule 115: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
116. Rule 116: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
117. Rule 117: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
118. Rule 118: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
119. Rule 119: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
120. Rule 120: say what you saw, quote the line, and do not guess. \`\`\` is a fence, \${x} is text.
`
const roles = ['architect', 'tester', 'writer']
const answers = await pipeline(
  roles,
  (role) => agent(PROMPT(role), { label: role }),
  (answer, role) => agent(PROMPT(role, answer), { label: `${role} again` }),
)
return { length: PROMPT('architect').length, answers }
