#!/usr/bin/env fanfold
// @ts-check
'use strict';
export /* 1 */ const meta = {
  name: `review`, 'description': 'a ' + "b\u{1f30d}\
c",
  whenToUse: "often", phases: [{ title: 'A', detail: 'x', provider: 'p', model: 'm' }, { title: 'B', },],
};
phase('A')
return await agent("p")
