#!/usr/bin/env fanfold
// Copyright of nobody in particular.
/*
 * A long comment, as many scripts begin with:
 *   usage: fanfold run header-comments
 * export const meta = { name: 'not this one' }
 */
'use strict';

export const meta = {
  // The name is also the file's.
  name: 'header-comments', /* short */
  'description': "It's a header with comments, both kinds of quotes and trailing commas",
  whenToUse: 'Never; it is a test.',
  phases: [
    { title: 'One', detail: 'first' }, // the first
    /* { title: 'Disabled' }, */
    { title: "Two", model: 'sonnet', },
  ],
};

phase('One')
const a = await agent('One.', { label: 'a' })
phase('Two')
return [a, await agent('Two.', { label: 'b', model: 'sonnet' })]
