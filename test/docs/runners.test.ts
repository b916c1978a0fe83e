import { expect, test } from 'vitest';
import { extendBody } from '../../src/jobs/http/schemas/runner.ts';
import { pushStatuses } from '../../src/runner/push.ts';
import { readPage } from '../support/pages.ts';

const { text } = readPage('docs/runners.md');

test('docs/runners.md has every status and code of a refused or failed call that runner.handle returns', () => {
  const [, table = ''] = text.split('| `status` | `body` |');
  const rows = table.split('\n\n', 1)[0] ?? '';
  const listed = [...rows.matchAll(/(\d{3}) ((?:`[a-z_]+`(?:, )?)+)/g)].flatMap(([, status, codes = '']) =>
    [...codes.matchAll(/[a-z_]+/g)].map(([code]) => [code, Number(status)]),
  );
  expect(Object.fromEntries(listed)).toEqual(pushStatuses);
});

test('docs/runners.md has the body of /extend', () => {
  const [, body = ''] = /\/extend` \((.*?)\)/.exec(text) ?? [];
  expect([...body.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(Object.keys(extendBody.shape));
  const { minValue, maxValue } = extendBody.shape.lease_secs;
  expect(body).toContain(`${minValue} to ${maxValue}`);
});
