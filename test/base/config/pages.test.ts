import { expect, test } from 'vitest';
import { oneModel } from '../../support/chat-gateway.ts';
import { mistakesIn, parse } from './support.ts';

const variables = { SECRET: 'a-secret-of-thirty-two-characters' };
const people = '[identity]\nsecret = "env:SECRET"\n';

function text(tables: string): string {
  return `bind_address = "127.0.0.1:8402"\nfeatures = ["chat"]\n${oneModel('http://127.0.0.1:1')}\n${tables}`;
}

test('[pages] switches the customers’ pages on, under the name of the operator', async () => {
  expect((await parse(text(people), {}, variables)).config.pages).toBeUndefined();
  expect((await parse(text(`${people}[pages]`), {}, variables)).config.pages).toEqual({ name: 'Tollbook' });
  const { config } = await parse(text(`${people}[pages]\nname = "Café Models"`), {}, variables);
  expect(config.pages).toEqual({ name: 'Café Models' });
});

test('[pages] need no models: an operator who sells only jobs has them too', async () => {
  const jobsOnly = text(`${people}[pages]`).replace('["chat"]', '["x402"]');
  const mistakes = await mistakesIn(jobsOnly, {}, variables);
  expect(mistakes.filter((mistake) => mistake.includes('pages'))).toEqual([]);
});

test.each([
  ['no accounts', '[pages]', 'pages: needs [identity]'],
  ['an empty name', `${people}[pages]\nname = ""`, 'pages.name'],
  ['a name that turns text around', `${people}[pages]\nname = "a\u202eb"`, 'pages.name'],
  ['an unknown key', `${people}[pages]\ntitle = "x"`, 'pages.title'],
])('[pages] with %s is refused', async (_what, tables, mistake) => {
  expect((await mistakesIn(text(tables), {}, variables)).join('\n')).toContain(mistake);
});
